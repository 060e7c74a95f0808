#include "cli/engine_flags.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <thread>

#include "cli/option_values.hpp"
#include "cli/settings.hpp"

namespace kvasir::cli {
namespace {

// More threads than processors wait for each other at every barrier of a step: a few times as many is an experiment, a
// hundred times looks like a hang.
constexpr std::uint32_t kMostThreads = 1024;
std::uint32_t max_threads() { return std::min(kMostThreads, std::max(16u, 4 * std::thread::hardware_concurrency())); }
constexpr std::uint32_t kMaxTokens = 1u << 24;   // of a step or a sequence; far above any model's context
constexpr const char* kGroup = "Engine";

}  // namespace

std::uint32_t default_threads() { return std::clamp(std::thread::hardware_concurrency(), 1u, max_threads()); }

engine::PoolConfig EngineFlags::pool_config() const {
  engine::PoolConfig config;
  config.threads = threads;
  if (max_num_batched_tokens) config.max_batched_tokens = *max_num_batched_tokens;
  if (max_num_seqs) config.max_sequences = *max_num_seqs;
  if (max_model_len) config.max_model_len = *max_model_len;
  if (block_size) config.block_tokens = *block_size;
  if (kv_cache_memory) config.kv_cache_bytes = *kv_cache_memory;
  const std::optional<format::KvType> type = format::parse_kv_type(kv_cache_dtype);
  KV_CHECK(type.has_value(), "--kv-cache-dtype was checked when it was parsed");
  config.kv_format = {*type, *type};
  if (context_shift) config.context_keep = keep.value_or(0);
  return config;
}

Result<model::ModelOptions> EngineFlags::model_options() const {
  model::ModelOptions options;
  options.compute = compute == "f32" ? model::Compute::f32 : model::Compute::int8;
  KV_ASSIGN(options.isa, platform::choose_isa(std::getenv("KVASIR_ISA")));
  options.threads = threads;
  return options;
}

void add_engine_flags(CLI::App& command, EngineFlags& flags) {
  command.add_option("--threads", flags.threads, "Threads of the engine (default: this machine's processors)")
      ->check(whole_number(1, max_threads()))->type_name("N")->group(kGroup);
  command.add_option("--max-num-batched-tokens", flags.max_num_batched_tokens, "Tokens of one step, prompts and answers together (default 512)")
      ->check(whole_number(1, kMaxTokens))->type_name("N")->group(kGroup);
  command.add_option("--max-num-seqs", flags.max_num_seqs, "Sequences that run at once (default 32)")
      ->check(whole_number(1, 65'536))->type_name("N")->group(kGroup);
  command.add_option("--max-model-len", flags.max_model_len, "Tokens of one sequence, prompt and answer (default: the model's context)")
      ->check(whole_number(1, kMaxTokens))->type_name("N")->group(kGroup);
  command.add_option("--block-size", flags.block_size, "Tokens of one cache block: 16, 32, 64, 128 or 256 (default 32)")
      ->check(one_of({"16", "32", "64", "128", "256"}))->type_name("N")->group(kGroup);
  command.add_option("--kv-cache-dtype", flags.kv_cache_dtype, "How K and V are stored: f32, f16 or bf16 (default f16)")
      ->check(one_of({"f32", "f16", "bf16"}))->type_name("TYPE")->group(kGroup);
  command.add_option("--kv-cache-memory", flags.kv_cache_memory, "Memory of the KV cache, as 512MiB or 2G (default: one longest sequence; serve: as many as may run, in at most half of the free memory)")
      ->transform(byte_size())->type_name("SIZE")->group(kGroup);
  command.add_option("--compute", flags.compute, "Activations: int8 (fast) or f32 (never quantized, the quality baseline; default int8)")
      ->check(one_of({"int8", "f32"}))->type_name("KIND")->group(kGroup);
  command.add_option("--seed", flags.seed, "Seed of every random choice (default 0)")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))->type_name("N")->group(kGroup);
  add_settings_options(command);
}

void add_context_shift_options(CLI::App& command, EngineFlags& flags) {
  CLI::Option* shift = command.add_flag("--context-shift", flags.context_shift,
      "Answers go on when the context is full: the older half is let go, the rest is computed anew (default: they end)")->group(kGroup);
  command.add_option("--keep", flags.keep, "First tokens of a sequence that --context-shift never lets go (default 0)")
      ->check(whole_number(0, kMaxTokens))->type_name("N")->needs(shift)->group(kGroup);
}

}  // namespace kvasir::cli
