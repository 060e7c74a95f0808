// The table of routes: method and path to handler, each with its access class. The same row decides who may call and what
// is called, so no spelling of a path reaches a handler past its check. What is in no row needs a key like any user route
// (deny by default), then gets 404.
//
// Answers HEAD by the GET row, OPTIONS by the methods of the path (and CORS preflights where origins are configured), a
// known path with another method by 405 with Allow.
//
// Thread rule: immutable after create(); any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "server/http/access.hpp"
#include "server/http/responder.hpp"

namespace kvasir::server {

using RouteHandler = std::function<void(HttpRequest, ResponderPtr)>;

struct Route {
  std::string method;    // GET, POST, PUT, PATCH or DELETE
  std::string pattern;   // "/v1/models/{id}": one segment; "/v1/models/{id...}": the rest, slashes and all
  Access access = Access::user;
  RouteHandler handler;
};

struct RouterConfig {
  KeyRing keys;
  bool admin_over_unix_socket = false;     // who may open the socket file may use admin routes without a key
  std::vector<std::string> cors_origins;   // exact origins, or "*"; empty: no CORS headers
};

class Router final : public HttpHandler {
 public:
  // Errors: bad_input: a pattern that is malformed, or a method and pattern given twice.
  static Result<std::unique_ptr<Router>> create(std::vector<Route> routes, RouterConfig config);
  ~Router() override;

  std::optional<HttpResponse> screen(const HttpRequest& head) override;
  void handle(HttpRequest request, ResponderPtr responder) override;

 private:
  struct State;
  explicit Router(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::server
