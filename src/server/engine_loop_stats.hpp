// What the engine loop counts, as one plain value: what metrics, health and load pages read.
// Thread rule: values. Counters run since the loop's start and never fall; the rest is the state after the last turn.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "engine/engine.hpp"
#include "server/token_sink.hpp"

namespace kvasir::server {

enum class LoopState : std::uint8_t {
  not_ready,  // no engine yet
  ready,
  draining,  // accepts nothing; what was accepted runs on
  stopped,   // every stream has ended
  failed,    // an exception ended the loop
};
std::string_view to_string(LoopState state);

enum class RefusalReason : std::uint8_t {
  queue_full_requests,  // max_queued_requests wait already
  queue_full_tokens,    // max_queued_tokens of prompts wait already
  never_fits,           // more than context or cache can ever hold
  bad_request,          // malformed in itself
  draining,             // draining or stopped
  not_ready,
  loop_failed,
};
inline constexpr std::size_t kRefusalReasons = 7;
std::string_view to_string(RefusalReason reason);

// Why requests wait in the engine's queue; the head's reason holds for all behind it.
inline constexpr std::size_t kQueueReasons = 5;
std::string_view to_string(engine::QueueReason reason);

struct LoopStats {
  LoopState state = LoopState::not_ready;

  // Requests. queued_*: accepted or reserved and not scheduled yet, those still in the mailbox included.
  std::uint32_t queued_requests = 0;
  std::uint64_t queued_tokens = 0;         // of their prompts
  std::uint32_t waiting = 0, running = 0;  // in the engine: queued there, admitted
  std::array<std::uint32_t, kQueueReasons> waiting_by_reason{};
  std::uint64_t submitted = 0;  // accepted
  std::array<std::uint64_t, kEndReasons> ended{};
  std::array<std::uint64_t, kRefusalReasons> refused{};

  // Tokens. Prompt tokens count where they are computed, so a request cancelled on the way counts in part.
  std::uint64_t prompt_tokens_computed = 0;
  std::uint64_t generated_tokens = 0;
  std::uint64_t scored_prompt_tokens = 0;  // given out with prompt_logprobs

  // Steps; seconds.
  std::uint64_t turns = 0, steps = 0;
  double forward_s = 0, step_s = 0;

  engine::CacheAccounting cache;
  std::array<engine::GroupAccounting, engine::kMaxCacheGroups> groups{};
  std::uint32_t group_count = 0;
  std::span<const engine::GroupAccounting> cache_groups() const { return {groups.data(), group_count}; }
};

// What a step did, and how many tokens of answers it brought.
using StepHook = std::function<void(const engine::StepReport& step, std::uint32_t generated_tokens)>;
// Told before the first event of a step is given out (true) and after its last (false), should a sink throw too.
using TellHook = std::function<void(bool telling)>;

}  // namespace kvasir::server
