#include "server/http/router.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace kvasir::server {
namespace {

constexpr std::array<std::string_view, 5> kMethods = {"GET", "POST", "PUT", "PATCH", "DELETE"};

// One path of the table: its segments, and a row for each method.
struct Path {
  struct Segment {
    enum class Kind { literal, one, rest } kind;
    std::string text;   // the literal, or the parameter's name
  };
  std::string pattern;
  std::vector<Segment> segments;
  std::map<std::string, Route, std::less<>> rows;   // by method
};

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  path.remove_prefix(1);
  while (true) {
    const std::size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

Result<std::vector<Path::Segment>> parse_pattern(const std::string& pattern) {
  const auto bad = [&](std::string_view why) {
    return Error{ErrorCode::bad_input, fmt::format("route pattern '{}' {}", pattern, why)};
  };
  if (!pattern.starts_with('/')) return bad("must begin with '/'");
  std::vector<Path::Segment> segments;
  for (std::string_view part : split(pattern)) {
    if (!segments.empty() && segments.back().kind == Path::Segment::Kind::rest) {
      return bad("has something after a parameter that takes the rest");
    }
    if (part.find_first_of("{}") == std::string_view::npos) {
      segments.push_back({Path::Segment::Kind::literal, std::string(part)});
      continue;
    }
    if (part.size() < 3 || part.front() != '{' || part.back() != '}') return bad("has a parameter that is not a segment");
    std::string_view name = part.substr(1, part.size() - 2);
    const bool rest = name.ends_with("...");
    if (rest) name.remove_suffix(3);
    if (name.empty() || name.find_first_of("{}.") != std::string_view::npos) return bad("has a parameter without a name");
    segments.push_back({rest ? Path::Segment::Kind::rest : Path::Segment::Kind::one, std::string(name)});
  }
  return segments;
}

using Parameters = std::vector<std::pair<std::string, std::string>>;

// The parameters if `path` fits. `parts` are its segments.
std::optional<Parameters> match(const Path& candidate, std::string_view path, const std::vector<std::string_view>& parts) {
  Parameters parameters;
  for (std::size_t i = 0; i < candidate.segments.size(); ++i) {
    const Path::Segment& segment = candidate.segments[i];
    if (i >= parts.size() || (segment.kind != Path::Segment::Kind::literal && parts[i].empty())) return std::nullopt;
    if (segment.kind == Path::Segment::Kind::literal && parts[i] != segment.text) return std::nullopt;
    if (segment.kind == Path::Segment::Kind::one) parameters.emplace_back(segment.text, std::string(parts[i]));
    if (segment.kind == Path::Segment::Kind::rest) {
      const auto offset = static_cast<std::size_t>(parts[i].data() - path.data());
      parameters.emplace_back(segment.text, std::string(path.substr(offset)));
      return parameters;
    }
  }
  return parts.size() == candidate.segments.size() ? std::optional(std::move(parameters)) : std::nullopt;
}

HttpResponse refusal(int status, std::string message, std::string code, HeaderFields headers = {}) {
  return error_response(status, {.message = std::move(message), .param = std::nullopt, .code = std::move(code)},
                        std::move(headers));
}

}  // namespace

struct Router::State {
  struct Found {
    const Path* path = nullptr;   // null: no such path
    const Route* row = nullptr;   // null: no such method
    Parameters parameters;
  };

  Found find(const HttpRequest& request) const;
  const Path* find_path(std::string_view path, Parameters& parameters) const;
  // Who is asking, or the refusal.
  std::optional<HttpResponse> judge(const HttpRequest& request, const Found& found, Identity& identity) const;
  std::optional<Identity> identity_of(const HttpRequest& request) const;
  std::string allow(const Path* path) const;
  HeaderFields cors(const HttpRequest& request) const;
  HttpResponse preflight(const HttpRequest& request, const Path* path) const;
  // The entry of a pattern, made where there is none yet.
  Path& path_of(const std::string& pattern, const std::vector<Path::Segment>& segments);

  std::map<std::string, Path, std::less<>> exact;   // patterns without parameters
  std::vector<Path> patterns;                       // in the order given
  RouterConfig config;
};

Path& Router::State::path_of(const std::string& pattern, const std::vector<Path::Segment>& segments) {
  const bool literal = std::all_of(segments.begin(), segments.end(), [](const Path::Segment& segment) {
    return segment.kind == Path::Segment::Kind::literal;
  });
  if (literal) return exact[pattern];
  for (Path& known : patterns) {
    if (known.pattern == pattern) return known;
  }
  return patterns.emplace_back();
}

const Path* Router::State::find_path(std::string_view path, Parameters& parameters) const {
  if (const auto it = exact.find(path); it != exact.end()) return &it->second;
  if (!path.starts_with('/')) return nullptr;
  const std::vector<std::string_view> parts = split(path);
  for (const Path& candidate : patterns) {
    if (auto fitting = match(candidate, path, parts)) {
      parameters = std::move(*fitting);
      return &candidate;
    }
  }
  return nullptr;
}

Router::State::Found Router::State::find(const HttpRequest& request) const {
  Found found;
  found.path = find_path(request.path, found.parameters);
  if (found.path == nullptr) return found;
  const auto row = found.path->rows.find(request.method == "HEAD" ? "GET" : std::string_view(request.method));
  if (row != found.path->rows.end()) found.row = &row->second;
  return found;
}

std::optional<Identity> Router::State::identity_of(const HttpRequest& request) const {
  const auto key = presented_key(request.headers);
  std::optional<Identity> identity = key ? config.keys.identify(*key) : std::nullopt;
  if (!identity && config.keys.empty()) identity = Identity{.tenant = "default", .admin = false};
  if (config.admin_over_unix_socket && request.unix_socket) {
    if (!identity) identity = Identity{.tenant = "default", .admin = true};
    identity->admin = true;
  }
  return identity;
}

std::optional<HttpResponse> Router::State::judge(const HttpRequest& request, const Found& found, Identity& identity) const {
  const Access access = found.row != nullptr ? found.row->access : Access::user;
  const std::optional<Identity> known = identity_of(request);
  if (known) identity = *known;
  if (access == Access::open) return std::nullopt;
  if (!known) {
    return refusal(401, "This server needs an API key: send the header 'Authorization: Bearer KEY' with a key it knows.",
                   "invalid_api_key", {{"WWW-Authenticate", "Bearer"}});
  }
  if (access == Access::admin && !known->admin) {
    return refusal(403, config.keys.has_admin()
                            ? fmt::format("{} {} needs a key with the admin right.", request.method, request.path)
                            : fmt::format("{} {} needs a key with the admin right, and no such key is configured "
                                          "(a line 'TENANT KEY admin' in the key file).", request.method, request.path),
                   "admin_key_required");
  }
  return std::nullopt;
}

std::string Router::State::allow(const Path* path) const {
  std::vector<std::string_view> methods;
  for (const std::string_view method : kMethods) {
    if (path != nullptr && !path->rows.contains(method)) continue;
    methods.push_back(method);
    if (method == "GET") methods.push_back("HEAD");
  }
  methods.push_back("OPTIONS");
  return fmt::format("{}", fmt::join(methods, ", "));
}

HeaderFields Router::State::cors(const HttpRequest& request) const {
  const std::string* origin = find_header(request.headers, "origin");
  if (config.cors_origins.empty() || origin == nullptr) return {};
  const auto allowed = [&](std::string_view value) {
    return std::find(config.cors_origins.begin(), config.cors_origins.end(), value) != config.cors_origins.end();
  };
  if (allowed("*")) return {{"Access-Control-Allow-Origin", "*"}, {"Access-Control-Expose-Headers", "x-request-id"}};
  if (!allowed(*origin)) return {{"Vary", "Origin"}};
  return {{"Access-Control-Allow-Origin", *origin}, {"Access-Control-Expose-Headers", "x-request-id"}, {"Vary", "Origin"}};
}

HttpResponse Router::State::preflight(const HttpRequest& request, const Path* path) const {
  HttpResponse response{.status = 204, .headers = {{"Allow", allow(path)}}, .content_type = {}, .body = {}};
  const HeaderFields fields = cors(request);
  if (fields.empty() || fields[0].name != "Access-Control-Allow-Origin") return response;
  response.headers.push_back({"Access-Control-Allow-Methods", allow(path)});
  const std::string* asked = find_header(request.headers, "access-control-request-headers");
  response.headers.push_back({"Access-Control-Allow-Headers", asked != nullptr ? *asked : "authorization, content-type"});
  response.headers.push_back({"Access-Control-Max-Age", "600"});
  return response;
}

Router::Router(std::unique_ptr<State> state) : state_(std::move(state)) {}
Router::~Router() = default;

Result<std::unique_ptr<Router>> Router::create(std::vector<Route> routes, RouterConfig config) {
  auto state = std::make_unique<State>();
  state->config = std::move(config);
  for (Route& route : routes) {
    if (std::find(kMethods.begin(), kMethods.end(), route.method) == kMethods.end()) {
      return Error{ErrorCode::bad_input, fmt::format("route {} {}: the method must be one of {}", route.method, route.pattern,
                                                     fmt::join(kMethods, ", "))};
    }
    KV_ASSIGN(auto segments, parse_pattern(route.pattern));
    Path& path = state->path_of(route.pattern, segments);
    path.pattern = route.pattern;
    path.segments = std::move(segments);
    if (path.rows.contains(route.method)) {
      return Error{ErrorCode::bad_input, fmt::format("route {} {} is given twice", route.method, route.pattern)};
    }
    std::string method = route.method;
    path.rows.emplace(std::move(method), std::move(route));
  }
  return std::unique_ptr<Router>(new Router(std::move(state)));
}

std::optional<HttpResponse> Router::screen(const HttpRequest& head) {
  if (head.method == "OPTIONS") return std::nullopt;   // says no more than which methods there are
  Identity ignored;
  std::optional<HttpResponse> refused = state_->judge(head, state_->find(head), ignored);
  if (!refused) return std::nullopt;
  for (HeaderField& field : state_->cors(head)) refused->headers.push_back(std::move(field));
  return refused;
}

void Router::handle(HttpRequest request, ResponderPtr responder) {
  for (HeaderField& field : state_->cors(request)) responder->add_header(std::move(field.name), std::move(field.value));
  State::Found found = state_->find(request);
  if (request.method == "OPTIONS") {
    responder->send(state_->preflight(request, found.path));
    return;
  }
  Identity identity;
  std::optional<HttpResponse> answer = state_->judge(request, found, identity);   // again: screen() is a courtesy
  if (!answer && found.path == nullptr) {
    answer = refusal(404, fmt::format("There is no {} on this server.", request.path), "unknown_url");
  } else if (!answer && found.row == nullptr) {
    const std::string allowed = state_->allow(found.path);
    answer = refusal(405, fmt::format("{} does not take {}; it takes {}.", request.path, request.method, allowed),
                     "method_not_allowed", {{"Allow", allowed}});
  }
  if (answer) {
    responder->send(*answer);
    return;
  }
  request.tenant = std::move(identity.tenant);
  request.admin = identity.admin;
  request.path_parameters = std::move(found.parameters);
  found.row->handler(std::move(request), std::move(responder));
}

}  // namespace kvasir::server
