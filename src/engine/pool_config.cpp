#include "engine/pool_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sched/scheduler.hpp"

namespace kvasir::engine {
namespace {

// Limits that keep a typing error from asking for absurd workspaces; none is reached in practice.
constexpr std::uint32_t kMaxThreads = 1024;
constexpr std::uint32_t kMaxRows = 1u << 20;
constexpr std::uint32_t kMaxQueued = 1u << 24;

Status in_range(std::string_view key, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value >= low && value <= high) return ok_status();
  return Error{ErrorCode::bad_input, fmt::format("{} is {}, valid: {} to {}", key, value, low, high)};
}

}  // namespace

Status validate(const PoolConfig& config) {
  const std::uint32_t b = config.block_tokens;
  if (b != 16 && b != 32 && b != 64 && b != 128 && b != 256) {
    return Error{ErrorCode::bad_input, fmt::format("block-size is {}, valid: 16, 32, 64, 128 or 256", b)};
  }
  for (const format::KvType type : {config.kv_format.k, config.kv_format.v}) {
    if (!format::is_offered(type)) {
      return Error{ErrorCode::bad_input, fmt::format("kv-cache-dtype is {}, valid: f32, f16 or bf16 (it can be planned, "
                                                     "not stored)", format::to_string(type))};
    }
  }
  KV_TRY(in_range("threads", config.threads, 1, kMaxThreads));
  KV_TRY(in_range("max-num-batched-tokens", config.max_batched_tokens, 1, kMaxRows));
  const std::uint32_t sequences =
      config.max_sequences > 0 ? config.max_sequences : std::min(kDefaultMaxSequences, config.max_batched_tokens);
  KV_TRY(in_range("max-num-seqs", sequences, 1, config.max_batched_tokens));
  if (config.max_queued != 0) KV_TRY(in_range("max-queued", config.max_queued, sequences, kMaxQueued));
  if (!(config.itl_target_s >= 0 && config.itl_target_s <= sched::kMostItlTargetS)) {
    return Error{ErrorCode::bad_input, fmt::format("itl-target is {} s, valid: 0 (none) to {} s", config.itl_target_s,
                                                   sched::kMostItlTargetS)};
  }
  if (config.logits_rows != 0) {
    KV_TRY(in_range("logits-rows", config.logits_rows, sequences, config.max_batched_tokens));
  }
  return ok_status();
}

}  // namespace kvasir::engine
