// What waits for a connection leaves together: few system calls, whatever the number of pieces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "http_support.hpp"
#include "server/http/http_server.hpp"

namespace kvasir::server {
namespace {

using testing::StartsWith;

TEST(HttpServer, HeldOutputLeavesWhenTheLastHoldIsLetGo) {
  std::mutex mutex;
  ResponderPtr kept;
  TestServer server([&](const HttpRequest&, const ResponderPtr& responder) {
    responder->begin_stream(200, {}, "text/plain");
    const std::lock_guard lock(mutex);
    kept = responder;
  });
  RawClient client = server.client();
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string head = client.read_until("\r\n\r\n");
  ASSERT_THAT(head, StartsWith("HTTP/1.1 200"));
  const auto sent = [&] { return server.http->stats().sent_bytes; };
  ASSERT_TRUE(eventually([&] { return sent() == head.size(); })) << "counted after it is sent";
  server.http->hold_output();
  server.http->hold_output();
  {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(kept->write("one"));
    EXPECT_TRUE(kept->write("two"));
  }
  server.http->release_output();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(sent(), head.size()) << "one hold is left";
  const std::uint64_t writes = server.http->stats().writes;
  server.http->release_output();
  EXPECT_EQ(client.read_until("two\r\n"), "3\r\none\r\n3\r\ntwo\r\n");
  EXPECT_TRUE(eventually([&] { return server.http->stats().writes == writes + 1; })) << "both in one";
  const std::lock_guard lock(mutex);
  EXPECT_TRUE(kept->write("three"));
  EXPECT_EQ(client.read_until("three\r\n"), "5\r\nthree\r\n");
  EXPECT_TRUE(kept->end());
}

// What comes while the peer does not read gathers behind the write in flight: a system call a buffer, not one a piece.
TEST(HttpServer, WhatGathersBehindAFullSocketLeavesTogether) {
  constexpr int kPieces = 5000;
  HttpConfig config;
  config.max_queued_bytes = 64 << 20;
  std::mutex mutex;
  ResponderPtr kept;
  TestServer server(
      [&](const HttpRequest&, const ResponderPtr& responder) {
        responder->begin_stream(200, {}, "text/plain");
        const std::lock_guard lock(mutex);
        kept = responder;
      },
      config);
  RawClient client = server.client(4096);
  client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  client.read_until("\r\n\r\n");
  const std::lock_guard lock(mutex);
  const std::string filler(64 << 10, 'x');
  while (kept->queued_bytes() < (4 << 20)) ASSERT_TRUE(kept->write(filler));
  std::uint64_t before = 0;
  int same = 0;
  ASSERT_TRUE(eventually([&] {   // the kernel holds what it can
    const std::uint64_t now = server.http->stats().writes;
    same = now == std::exchange(before, now) ? same + 1 : 0;
    return same == 20;
  }));
  for (int i = 0; i < kPieces; ++i) ASSERT_TRUE(kept->write("y"));
  ASSERT_TRUE(kept->end());
  EXPECT_LE(server.http->stats().writes, before + 1);
  const std::string all = client.read_to_end();
  EXPECT_TRUE(all.ends_with("\r\n0\r\n\r\n"));
  EXPECT_EQ(std::count(all.begin(), all.end(), 'y'), kPieces);
  EXPECT_LT(server.http->stats().writes - before, kPieces / 5);
}

}  // namespace
}  // namespace kvasir::server
