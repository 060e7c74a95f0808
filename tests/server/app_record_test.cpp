// GET /kv/record: served once it is made, and only to who may ask.
#include <condition_variable>
#include <mutex>

#include "tests/server/app_harness.hpp"

namespace kvasir::server::app_test {
namespace {

// A maker that waits until the test says so, or the server ends.
struct HeldMaker {
  std::atomic<bool> go{false}, stopped{false};
  RecordMaker maker(Result<std::string> made) {
    return [this, made](const std::function<bool()>& go_on) -> Result<std::string> {
      while (!go && go_on()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      stopped = !go;
      return go ? made : Result<std::string>(Error{ErrorCode::cancelled, "stopped"});
    };
  }
};

// Asks until the answer is no 503.
Json asked(const TestApp& server, int status) {
  for (int tries = 0; tries < 5000; ++tries) {
    const RawResponse response = server.client().get("/kv/record");
    if (response.status == 503) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    EXPECT_EQ(response.status, status) << response.body;
    return Json::parse(response.body, nullptr, false);
  }
  ADD_FAILURE() << "no record came";
  return {};
}

TEST(AppRecord, IsServedOnceItIsMade) {
  HeldMaker held;
  TestApp server({}, 512, false, held.maker(std::string("{\"kvasir_record\": 1}")));
  const RawResponse early = server.client().get("/kv/record");
  EXPECT_EQ(early.status, 503) << early.body;
  EXPECT_EQ(early.header("Retry-After"), "2");
  EXPECT_EQ(server.get("/health")["status"], "ok") << "nothing waits for it";
  EXPECT_EQ(server.post("/v1/completions", completion("a", 2))["usage"]["completion_tokens"], 2);
  held.go = true;
  EXPECT_EQ(asked(server, 200)["kvasir_record"], 1);
}

TEST(AppRecord, AFailureSaysNothingOfPaths) {
  HeldMaker held;
  held.go = true;
  TestApp server({}, 512, false, held.maker(Error{ErrorCode::io, "cannot write '/secret/path'"}));
  const Json error = asked(server, 500);
  EXPECT_EQ(error["error"]["code"], "record_failed");
  EXPECT_EQ(error.dump().find("secret"), std::string::npos);
  server.app->stop();
  server.app->wait();
  EXPECT_NE(server.log.find("/secret/path"), std::string::npos) << "the log says why";
}

TEST(AppRecord, AnExceptionEndsTheRecordAlone) {
  TestApp server({}, 512, false, [](const std::function<bool()>&) -> Result<std::string> { throw std::runtime_error("foreign"); });
  EXPECT_EQ(asked(server, 500)["error"]["code"], "record_failed");
  EXPECT_EQ(server.get("/health")["status"], "ok");
}

TEST(AppRecord, TheServerDoesNotWaitForItToEnd) {
  HeldMaker held;
  {
    TestApp server({}, 512, false, held.maker(std::string("{}")));
  }
  EXPECT_TRUE(held.stopped);
}

TEST(AppRecord, WithoutAMakerThereIsNone) {
  TestApp server;
  EXPECT_EQ(server.get("/kv/record", 404)["error"]["code"], "no_record");
}

TEST(AppRecord, NeedsAKeyWhereThereAreKeys) {
  AppConfig config;
  ASSERT_TRUE(config.keys.add("a-secret-key", "test").ok());
  TestApp server(std::move(config), 512, false, [](const std::function<bool()>&) -> Result<std::string> { return std::string("{}"); });
  EXPECT_EQ(server.client().get("/kv/record").status, 401);
}

}  // namespace
}  // namespace kvasir::server::app_test
