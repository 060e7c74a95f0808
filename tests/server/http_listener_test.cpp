// Where the server listens: addresses, socket files, and configurations that name neither.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "http_support.hpp"

namespace kvasir::server {
namespace {

using testing::HasSubstr;

TEST(HttpListener, ListensOnAUnixSocketThatOnlyItsOwnerMayOpen) {
  const std::string path = testing::TempDir() + "kvasir_http_test.sock";
  std::filesystem::remove(path);
  std::mutex mutex;
  std::string peer;
  HttpConfig config;
  config.host.clear();
  config.unix_socket = path;
  {
    TestServer server([&](const HttpRequest& request, const ResponderPtr& responder) {
      {
        const std::lock_guard lock(mutex);
        peer = request.unix_socket ? request.peer : "not a Unix socket";
      }
      responder->send(200, {}, "text/plain", "ok");
    }, config);
    EXPECT_EQ(server.http->url(), "unix:" + path);
    EXPECT_EQ(std::filesystem::status(path).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    EXPECT_EQ(RawClient(path).get("/").body, "ok");
    EXPECT_EQ(peer, "unix");

    FunctionHandler handler(answer_ok);
    const auto second = HttpServer::create(config, handler);
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(second.error().message, HasSubstr("another process listens"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(HttpListener, ReplacesADeadSocketFileAndNothingElse) {
  const std::string path = testing::TempDir() + "kvasir_http_stale.sock";
  std::filesystem::remove(path);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(dead);
  HttpConfig config;
  config.unix_socket = path;
  config.port = 0;
  FunctionHandler handler(answer_ok);
  { EXPECT_TRUE(HttpServer::create(config, handler).ok()); }
  std::ofstream(path) << "precious";
  const auto refused = HttpServer::create(config, handler);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("not a socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove(path);
}

TEST(HttpListener, RefusesBadConfigurationByName) {
  FunctionHandler handler(answer_ok);
  const auto message = [&](const std::function<void(HttpConfig&)>& change) {
    HttpConfig config;
    config.port = 0;
    change(config);
    const auto created = HttpServer::create(config, handler);
    return created.ok() ? std::string("accepted") : created.error().message;
  };
  EXPECT_THAT(message([](HttpConfig& c) { c.io_threads = 0; }), HasSubstr("io_threads is 0; it must be from 1 to 64"));
  EXPECT_THAT(message([](HttpConfig& c) { c.max_header_bytes = 1; }), HasSubstr("max_header_bytes"));
  EXPECT_THAT(message([](HttpConfig& c) { c.host = "not.an.address"; }), HasSubstr("--host not.an.address"));
  EXPECT_THAT(message([](HttpConfig& c) { c.host.clear(); }), HasSubstr("host and unix_socket are both empty"));
  EXPECT_THAT(message([](HttpConfig& c) { c.unix_socket = std::string(200, 'a'); }), HasSubstr("200 characters"));
  TestServer server(answer_ok);
  EXPECT_THAT(message([&](HttpConfig& c) { c.port = server.http->port(); }), HasSubstr("in use"));
}

}  // namespace
}  // namespace kvasir::server
