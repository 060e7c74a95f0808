// Every route of the server, with who may call it: what the router is made of.
// Thread rule: handlers run on I/O threads and hand over what takes time.
#pragma once

#include <functional>
#include <vector>

#include "server/app/app_context.hpp"
#include "server/http/http_server.hpp"
#include "server/http/router.hpp"

namespace kvasir::server {

// How routes learn about the HTTP server, which is made after them.
using HttpStatsSource = std::function<HttpStats()>;

// `app` outlives the handlers.
std::vector<Route> all_routes(AppContext& app, HttpStatsSource http);

// The parts of it.
void add_generation_routes(AppContext& app, std::vector<Route>& routes);              // answers
void add_plain_routes(AppContext& app, std::vector<Route>& routes);                   // models, tokens, rendered prompts
void add_probe_routes(AppContext& app, HttpStatsSource http, std::vector<Route>& routes);  // health, metrics, version

}  // namespace kvasir::server
