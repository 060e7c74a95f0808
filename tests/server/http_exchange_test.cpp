// The meeting point of producer and I/O thread, without a socket.
#include "server/http/exchange.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace kvasir::server {
namespace {

struct Fixture {
  std::atomic<int> wakes = 0;
  std::shared_ptr<Exchange> exchange =
      std::make_shared<Exchange>(Exchange::Traits{.id = "r1", .max_queued_bytes = 1000}, [this] { ++wakes; });
  std::string take() {
    std::string out;
    taken = exchange->take(out);
    return out;
  }
  Exchange::Taken taken;
};

TEST(HttpExchange, PiecesThatAreReadyTogetherLeaveTogether) {
  Fixture f;
  f.exchange->begin_stream(200, {}, "text/event-stream");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(f.exchange->write("token"));
  EXPECT_EQ(f.wakes, 1);
  const std::string all = f.take();
  EXPECT_EQ(all.size(), all.find("\r\n\r\n") + 4 + 10 * std::string("5\r\ntoken\r\n").size());
  EXPECT_FALSE(f.taken.complete);
  f.exchange->write("more");
  EXPECT_EQ(f.wakes, 2);
  EXPECT_EQ(f.take(), "4\r\nmore\r\n");
  f.exchange->end();
  EXPECT_EQ(f.take(), "0\r\n\r\n");
  EXPECT_TRUE(f.taken.complete && f.taken.keep_alive);
}

TEST(HttpExchange, CountsWhatTheKernelHasNotTaken) {
  Fixture f;
  f.exchange->begin_stream(200, {}, "text/plain");
  const std::size_t head = f.exchange->queued_bytes();
  EXPECT_GT(head, 50u);
  EXPECT_EQ(f.take().size(), head);
  EXPECT_EQ(f.exchange->queued_bytes(), head) << "taken is not sent";
  f.exchange->sent(head - 10);
  EXPECT_EQ(f.exchange->queued_bytes(), 10u);
  f.exchange->write("abc");
  EXPECT_EQ(f.exchange->queued_bytes(), 10u + 8u);
}

TEST(HttpExchange, AFullQueueCutsTheStream) {
  Fixture f;
  std::optional<DisconnectReason> told;
  f.exchange->on_disconnect([&](DisconnectReason reason) { told = reason; });
  f.exchange->begin_stream(200, {}, "text/plain");
  EXPECT_TRUE(f.exchange->write(std::string(500, 'x')));
  EXPECT_FALSE(f.exchange->write(std::string(500, 'x')));
  EXPECT_TRUE(f.exchange->gone());
  EXPECT_EQ(f.exchange->lost(), DisconnectReason::slow_reader);
  EXPECT_FALSE(told.has_value()) << "the I/O thread tells, not the producer that holds its own locks";
  f.exchange->lose(DisconnectReason::peer_closed);
  EXPECT_EQ(told, DisconnectReason::slow_reader) << "the first reason stays";
}

TEST(HttpExchange, TellsOnceAndOnlyWhileTheAnswerIsUnfinished) {
  Fixture f;
  int told = 0, replaced = 0;
  f.exchange->on_disconnect([&](DisconnectReason) { ++replaced; });
  f.exchange->on_disconnect([&](DisconnectReason) { ++told; });
  f.exchange->lose(DisconnectReason::peer_closed);
  f.exchange->lose(DisconnectReason::peer_closed);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(replaced, 0);

  Fixture done;
  done.exchange->on_disconnect([&](DisconnectReason) { ++told; });
  done.exchange->send(200, {}, "text/plain", "ok");
  done.exchange->lose(DisconnectReason::peer_closed);
  EXPECT_EQ(told, 1);
}

TEST(HttpExchange, OneAnswerOnly) {
  Fixture f;
  EXPECT_FALSE(f.exchange->write("before the head"));
  EXPECT_FALSE(f.exchange->end());
  EXPECT_TRUE(f.exchange->send(404, {}, "text/plain", "no"));
  EXPECT_FALSE(f.exchange->send(200, {}, "text/plain", "yes"));
  EXPECT_FALSE(f.exchange->begin_stream(200, {}, "text/plain"));
  EXPECT_EQ(f.exchange->status(), 404);
  const std::string out = f.take();
  EXPECT_TRUE(out.starts_with("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_TRUE(out.ends_with("\r\n\r\nno"));
}

TEST(HttpExchange, ALetGoResponderAnswers500) {
  Fixture f;
  Exchange::responder(f.exchange).reset();
  EXPECT_TRUE(f.take().starts_with("HTTP/1.1 500 "));
  EXPECT_TRUE(f.taken.complete);
}

TEST(HttpExchange, PingsOnlyASilentEventStream) {
  Fixture f;
  f.exchange->ping();
  EXPECT_EQ(f.take(), "");
  f.exchange->begin_stream(200, {}, "text/event-stream; charset=utf-8");
  f.exchange->ping();   // the head is queued: it is not silent
  const std::string head = f.take();
  EXPECT_EQ(head.find("ping"), std::string::npos);
  f.exchange->sent(head.size());
  f.exchange->ping();
  EXPECT_EQ(f.take(), "8\r\n: ping\n\n\r\n");
}

TEST(HttpExchange, ProducersAndTheIoThreadMayRace) {
  Fixture f;
  f.exchange->begin_stream(200, {}, "text/plain");
  std::atomic<bool> stop = false;
  std::thread producer([&] {
    while (f.exchange->write("x")) {
    }
    stop = true;
  });
  std::size_t taken = 0;
  while (taken < 10'000) {
    const std::string out = f.take();
    f.exchange->sent(out.size());
    taken += out.size();
    if (out.empty()) std::this_thread::yield();
    if (stop) break;   // the queue was full: that too is an end
  }
  f.exchange->lose(DisconnectReason::peer_closed);
  producer.join();
  EXPECT_EQ(f.exchange->write("y"), false);
}

}  // namespace
}  // namespace kvasir::server
