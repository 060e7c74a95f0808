// Routes, keys and who may do what; and the log, which must not tell.
#include "server/http/router.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "server/log.hpp"

namespace kvasir::server {
namespace {

using testing::HasSubstr;
using testing::Not;

class FakeResponder final : public Responder {
 public:
  void add_header(std::string name, std::string value) override { fields.push_back({std::move(name), std::move(value)}); }
  bool send(int code, const HeaderFields& headers, std::string_view, std::string_view text) override {
    status = code;
    fields.insert(fields.end(), headers.begin(), headers.end());
    body = text;
    return true;
  }
  bool begin_stream(int, const HeaderFields&, std::string_view) override { return false; }
  bool write(std::string_view) override { return false; }
  bool end() override { return false; }
  void abort() override {}
  void on_disconnect(DisconnectCallback) override {}
  std::size_t queued_bytes() const override { return 0; }
  bool gone() const override { return false; }

  std::string field(std::string_view name) const {
    const std::string* value = find_header(fields, name);
    return value != nullptr ? *value : "";
  }
  int status = 0;
  HeaderFields fields;
  std::string body;
};

// Routes that answer with what they were given.
std::unique_ptr<Router> make_router(RouterConfig config) {
  const auto echo = [](std::string route) {
    return [route](const HttpRequest& request, const ResponderPtr& responder) {
      std::string text = route + " tenant=" + request.tenant + (request.admin ? " admin" : "");
      for (const auto& [name, value] : request.path_parameters) text += " " + name + "=" + value;
      responder->send(200, {}, "text/plain", text);
    };
  };
  return Router::create({{"GET", "/health", Access::open, echo("health")},
                         {"GET", "/v1/models", Access::user, echo("models")},
                         {"GET", "/v1/models/{id...}", Access::user, echo("model")},
                         {"POST", "/v1/models/{id...}", Access::admin, echo("load")},
                         {"GET", "/slots/{id}/state", Access::user, echo("slot")},
                         {"POST", "/reset_prefix_cache", Access::admin, echo("reset")}},
                        std::move(config)).value();
}

struct Asked {
  std::string method = "GET", path = "/", key = {};
  HeaderFields headers = {};
  bool unix_socket = false;
};

FakeResponder ask(Router& router, const Asked& asked) {
  HttpRequest request;
  request.method = asked.method;
  request.path = asked.path;
  request.headers = asked.headers;
  request.unix_socket = asked.unix_socket;
  request.tenant = "forged";
  if (!asked.key.empty()) request.headers.push_back({"authorization", "Bearer " + asked.key});
  const auto responder = std::make_shared<FakeResponder>();
  if (const auto screened = router.screen(request)) {
    router.handle(request, responder);
    EXPECT_EQ(responder->status, screened->status) << "both checks say the same";
  } else {
    router.handle(request, responder);
  }
  return *responder;
}

RouterConfig with_keys() {
  RouterConfig config;
  EXPECT_TRUE(config.keys.add("# keys\n\nacme key-of-acme\nbolt key-of-bolt\nops key-of-the-ops admin\n", "test").ok());
  return config;
}

TEST(HttpRouter, FindsRoutesAndTheirParameters) {
  const auto router = make_router({});
  EXPECT_EQ(ask(*router, {.path = "/v1/models"}).body, "models tenant=default");
  EXPECT_EQ(ask(*router, {.path = "/v1/models/org/name"}).body, "model tenant=default id=org/name");
  EXPECT_EQ(ask(*router, {.path = "/slots/7/state"}).body, "slot tenant=default id=7");
  for (const char* path : {"/v1/models/", "/slots//state", "/slots/7/state/", "/slots/7", "/v1", "//health", "/health/", "/nope"}) {
    const FakeResponder answer = ask(*router, {.path = path});
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(nlohmann::json::parse(answer.body)["error"]["code"], "unknown_url");
  }
}

TEST(HttpRouter, SaysWhichMethodsAPathTakes) {
  const auto router = make_router({});
  const FakeResponder wrong = ask(*router, {.method = "DELETE", .path = "/v1/models"});
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.field("Allow"), "GET, HEAD, OPTIONS");
  const FakeResponder options = ask(*router, {.method = "OPTIONS", .path = "/v1/models/x"});
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.field("Allow"), "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(ask(*router, {.method = "OPTIONS", .path = "*"}).status, 204);
  EXPECT_EQ(ask(*router, {.method = "HEAD", .path = "/health"}).status, 200);
  EXPECT_EQ(ask(*router, {.method = "get", .path = "/health"}).status, 405) << "methods are case-sensitive";
}

TEST(HttpRouter, WithoutKeysUserRoutesAreOpenAndAdminRoutesShut) {
  const auto router = make_router({});
  EXPECT_EQ(ask(*router, {.path = "/v1/models"}).status, 200);
  const FakeResponder refused = ask(*router, {.method = "POST", .path = "/reset_prefix_cache"});
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, HasSubstr("no such key is configured"));
}

TEST(HttpRouter, WithKeysEverythingButOpenRoutesNeedsOne) {
  const auto router = make_router(with_keys());
  EXPECT_EQ(ask(*router, {.path = "/health"}).status, 200);
  for (const char* path : {"/v1/models", "/v1/models/x", "/reset_prefix_cache", "/nope"}) {
    for (const char* key : {"", "key-of-nobody", "key-of-acm", "key-of-acmee", " key-of-acme"}) {
      const FakeResponder refused = ask(*router, {.path = path, .key = key});
      EXPECT_EQ(refused.status, 401) << path << " with " << key;
      EXPECT_EQ(refused.field("WWW-Authenticate"), "Bearer");
      EXPECT_EQ(nlohmann::json::parse(refused.body)["error"]["code"], "invalid_api_key");
      EXPECT_THAT(refused.body, Not(HasSubstr("key-of")));
    }
  }
  EXPECT_EQ(ask(*router, {.path = "/nope", .key = "key-of-acme"}).status, 404);
}

TEST(HttpRouter, TheKeyDecidesTenantAndRights) {
  const auto router = make_router(with_keys());
  EXPECT_EQ(ask(*router, {.path = "/v1/models", .key = "key-of-acme"}).body, "models tenant=acme");
  EXPECT_EQ(ask(*router, {.path = "/v1/models", .headers = {{"x-api-key", "key-of-bolt"}}}).body, "models tenant=bolt");
  EXPECT_EQ(ask(*router, {.path = "/v1/models", .headers = {{"authorization", "bEaReR key-of-bolt"}}}).status, 200);
  for (const char* path : {"/reset_prefix_cache", "/v1/models/x"}) {
    const FakeResponder refused = ask(*router, {.method = "POST", .path = path, .key = "key-of-acme"});
    EXPECT_EQ(refused.status, 403);
    EXPECT_EQ(nlohmann::json::parse(refused.body)["error"]["code"], "admin_key_required");
    EXPECT_EQ(ask(*router, {.method = "POST", .path = path, .key = "key-of-the-ops"}).status, 200);
  }
  EXPECT_EQ(ask(*router, {.method = "POST", .path = "/reset_prefix_cache", .key = "key-of-the-ops"}).body, "reset tenant=ops admin");
}

TEST(HttpRouter, AnAmbiguousKeyIsNoKey) {
  const auto router = make_router(with_keys());
  EXPECT_EQ(ask(*router, {.path = "/v1/models", .key = "key-of-acme", .headers = {{"authorization", "Bearer x"}}}).status, 401);
  EXPECT_EQ(ask(*router, {.path = "/v1/models", .headers = {{"authorization", "Basic key-of-acme"}}}).status, 401);
  EXPECT_EQ(ask(*router, {.path = "/v1/models", .headers = {{"authorization", "Bearer "}}}).status, 401);
}

TEST(HttpRouter, TheUnixSocketMayBeTrusted) {
  RouterConfig config = with_keys();
  EXPECT_EQ(ask(*make_router(config), {.method = "POST", .path = "/reset_prefix_cache", .unix_socket = true}).status, 401);
  config.admin_over_unix_socket = true;
  const auto router = make_router(config);
  EXPECT_EQ(ask(*router, {.method = "POST", .path = "/reset_prefix_cache", .unix_socket = true}).status, 200);
  EXPECT_EQ(ask(*router, {.path = "/v1/models", .key = "key-of-acme", .unix_socket = true}).body, "models tenant=acme admin");
  EXPECT_EQ(ask(*router, {.method = "POST", .path = "/reset_prefix_cache"}).status, 401);
}

TEST(HttpRouter, CorsNamesTheOriginsItWasGivenAndNoOther) {
  RouterConfig config = with_keys();
  config.cors_origins = {"https://ui.example"};
  const auto router = make_router(config);
  const FakeResponder preflight =
      ask(*router, {.method = "OPTIONS", .path = "/v1/models",
                    .headers = {{"origin", "https://ui.example"}, {"access-control-request-headers", "authorization, x-stainless-os"}}});
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.field("Access-Control-Allow-Origin"), "https://ui.example");
  EXPECT_EQ(preflight.field("Access-Control-Allow-Headers"), "authorization, x-stainless-os");
  EXPECT_THAT(preflight.field("Access-Control-Allow-Methods"), HasSubstr("GET"));
  const FakeResponder refused = ask(*router, {.path = "/v1/models", .headers = {{"origin", "https://ui.example"}}});
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.field("Access-Control-Allow-Origin"), "https://ui.example") << "or the page cannot read the error";
  EXPECT_EQ(ask(*router, {.path = "/health", .headers = {{"origin", "https://evil.example"}}}).field("Access-Control-Allow-Origin"), "");
  EXPECT_EQ(ask(*make_router({}), {.path = "/health", .headers = {{"origin", "https://ui.example"}}}).field("Access-Control-Allow-Origin"), "");
}

TEST(HttpRouter, RefusesTablesThatContradictThemselves) {
  const RouteHandler none = [](const HttpRequest&, const ResponderPtr&) {};
  for (const auto& [routes, message] : std::vector<std::pair<std::vector<Route>, std::string>>{
           {{{"GET", "/a", Access::user, none}, {"GET", "/a", Access::open, none}}, "given twice"},
           {{{"GET", "/a/{b}", Access::user, none}, {"GET", "/a/{b}", Access::open, none}}, "given twice"},
           {{{"FETCH", "/a", Access::user, none}}, "FETCH /a: the method must be one of GET"},
           {{{"GET", "a", Access::user, none}}, "must begin with '/'"},
           {{{"GET", "/{a...}/b", Access::user, none}}, "after a parameter that takes the rest"},
           {{{"GET", "/x{a}", Access::user, none}}, "not a segment"},
           {{{"GET", "/{}", Access::user, none}}, "not a segment"},
           {{{"GET", "/{...}", Access::user, none}}, "without a name"}}) {
    const auto created = Router::create(routes, {});
    ASSERT_FALSE(created.ok()) << message;
    EXPECT_THAT(created.error().message, HasSubstr(message));
  }
}

TEST(HttpKeys, AreRefusedByLineAndNeverRepeated) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"good-key-1\nshort", "line 2: the key must have 8 to 512"},
      {std::string(513, 'k'), "513"},
      {"a b c d", "more than three words"},
      {"acme secret-key root", "third word must be 'admin'"},
      {"ac/me secret-key", "tenant"},
      {"acme secret-\xC3\xA9-key", "printable"},
      {"acme secret-key\nbolt secret-key", "line 2: the key was given before"}};
  for (const auto& [text, message] : cases) {
    KeyRing keys;
    const Status added = keys.add(text, "here");
    ASSERT_FALSE(added.ok()) << message;
    EXPECT_THAT(added.error().message, HasSubstr(message));
    EXPECT_THAT(added.error().message, HasSubstr("here, line"));
    EXPECT_THAT(added.error().message, Not(HasSubstr("secret")));
  }
}

TEST(HttpKeys, ComeFromAFile) {
  const std::string path = testing::TempDir() + "kvasir_keys.txt";
  std::ofstream(path) << "acme key-of-acme\r\n";
  KeyRing keys;
  ASSERT_TRUE(keys.add_file(path).ok());
  EXPECT_EQ(keys.identify("key-of-acme")->tenant, "acme");
  EXPECT_FALSE(keys.identify("").has_value());
  EXPECT_FALSE(keys.has_admin());
  std::filesystem::remove(path);
  const Status missing = keys.add_file(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr(path));
}

TEST(ServerLog, WritesOneLineAnEventThatNothingCanForge) {
  std::vector<std::string> lines;
  const Logger::Sink sink = [&](std::string_view line) { lines.emplace_back(line); };
  const std::string nasty = "a\nb\"\xFF";
  Logger(LogFormat::text, LogLevel::info, sink).log(LogLevel::info, "request", {{"path", nasty}, {"status", std::int64_t{200}}, {"ok", true}});
  Logger(LogFormat::json, LogLevel::info, sink).log(LogLevel::warning, "request", {{"path", nasty}, {"seconds", 0.5}});
  Logger(LogFormat::json, LogLevel::info, sink).log(LogLevel::debug, "unseen", {});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], testing::MatchesRegex(
      "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z info request path=\"a\\\\nb\\\\\".*\" status=200 ok=true\n"));
  const nlohmann::json parsed = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(parsed["level"], "warning");
  EXPECT_EQ(parsed["event"], "request");
  EXPECT_EQ(parsed["seconds"], 0.5);
  EXPECT_EQ(std::count(lines[1].begin(), lines[1].end(), '\n'), 1);
}

TEST(ServerLog, TellsAnAnswersFacts) {
  std::string line;
  Logger log(LogFormat::json, LogLevel::info, [&](std::string_view text) { line = text; });
  log.access({.id = "r1", .method = "POST", .path = "/v1/completions", .peer = "unix", .status = 200, .sent_bytes = 12,
              .seconds = 0.25, .lost = DisconnectReason::peer_closed});
  const nlohmann::json parsed = nlohmann::json::parse(line);
  EXPECT_EQ(parsed["level"], "warning");
  EXPECT_EQ(parsed["id"], "r1");
  EXPECT_EQ(parsed["lost"], "peer_closed");
}

}  // namespace
}  // namespace kvasir::server
