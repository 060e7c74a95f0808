#include "server/app/routes.hpp"

#include <utility>

namespace kvasir::server {

std::vector<Route> all_routes(AppContext& app, HttpStatsSource http) {
  std::vector<Route> routes;
  add_generation_routes(app, routes);
  add_plain_routes(app, routes);
  add_probe_routes(app, std::move(http), routes);
  return routes;
}

}  // namespace kvasir::server
