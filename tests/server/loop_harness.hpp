// An engine loop over the tiny model, for the tests of the loop.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "server/engine_loop.hpp"
#include "tests/engine/tiny_engine.hpp"
#include "tests/server/recorder_sink.hpp"

namespace kvasir::server::test {

using engine::GenerateRequest;
using engine::PoolConfig;
using engine::test::make_engine;
using engine::test::pool_of;
using engine::test::random_prompt;
using engine::test::request_of;
using engine::test::shared_gqa;

inline constexpr std::uint64_t kEver = std::numeric_limits<std::uint64_t>::max();

// A wakeup that is lost shows: no idle turn comes to the rescue within a test.
inline EngineLoopConfig config_of(std::uint32_t max_queued_requests = 256) {
  return {.max_queued_requests = max_queued_requests, .check_invariants = true, .idle_turn_ms = 3'600'000};
}

inline std::unique_ptr<EngineLoop> make_loop(const EngineLoopConfig& config, const PoolConfig& pool,
                                             bool with_tokenizer = false) {
  auto loop = std::make_unique<EngineLoop>(config);
  const Status started = loop->start(make_engine(shared_gqa(), pool, with_tokenizer));
  EXPECT_TRUE(started.ok());
  return loop;
}

// REQUIRES: it is accepted.
inline StreamId submit(EngineLoop& loop, GenerateRequest request, std::shared_ptr<TokenSink> sink) {
  Submitted submitted = loop.submit({std::move(request), std::move(sink)});
  if (const auto* refusal = std::get_if<Refusal>(&submitted)) ADD_FAILURE() << refusal->error.message;
  const auto* id = std::get_if<StreamId>(&submitted);
  return id != nullptr ? *id : StreamId();
}

// The refusal's message; its reason is checked.
inline std::string refusal_of(const Submitted& submitted, RefusalReason reason) {
  const auto* refusal = std::get_if<Refusal>(&submitted);
  if (refusal == nullptr) return "accepted";
  EXPECT_EQ(to_string(refusal->reason), to_string(reason)) << refusal->error.message;
  return refusal->error.message;
}

}  // namespace kvasir::server::test
