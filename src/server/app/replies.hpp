// Answers and refusals on their way to a responder, in the forms that clients know.
// Thread rule: pure but for the responder; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/api/api_result.hpp"
#include "server/engine_loop_mailbox.hpp"
#include "server/http/responder.hpp"

namespace kvasir::server {

void reply(Responder& responder, const api::ApiError& error);
void reply(Responder& responder, const api::Json& json, int status = 200);

// What a refusal of the engine loop means to a client: 503 server_is_overloaded with the seconds to wait when the
// server is full, ending or not there yet; 400 when the request is at fault, with x-should-retry: false if it can never
// fit. `prompt_field` is what to shorten: "prompt" or "messages".
api::ApiError api_error(const Refusal& refusal, std::uint32_t retry_after_s, std::string_view prompt_field);

}  // namespace kvasir::server
