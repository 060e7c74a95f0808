// The way in: what is decided about a request on the I/O thread, before anything is spent on it.
// Thread rule: any thread.
#pragma once

#include <functional>
#include <optional>

#include "server/api/api_result.hpp"
#include "server/app/app_context.hpp"
#include "server/app/generation.hpp"
#include "server/http/responder.hpp"

namespace kvasir::server {

// The model, or null after a 503 that tells how far loading is, or that the server ends.
ServedModel* require_model(AppContext& app, Responder& responder);

// A tenant's slot and a place in the queue; none after a 429 or 503.
std::optional<Entry> let_in(AppContext& app, ServedModel& model, const HttpRequest& request, ResponderPtr responder);

// 503 where the workers have too much before them.
api::ApiError busy(AppContext& app);

// The body of the 503 while loading: an error in the usual form, and how far it is.
api::Json loading_json(const LoadProgress::Report& report);

}  // namespace kvasir::server
