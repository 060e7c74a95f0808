// The options of every command that runs the engine: one struct, one place that declares, checks and explains them.
// Thread rule: a value; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/pool_config.hpp"
#include "model/model.hpp"

namespace CLI {
class App;
}

namespace kvasir::cli {

// The machine's processors, within what --threads takes.
std::uint32_t default_threads();

// Unset ones take the engine's default, which is in the help text.
struct EngineFlags {
  std::uint32_t threads = default_threads();
  std::optional<std::uint32_t> max_num_batched_tokens;
  std::optional<std::uint32_t> max_num_seqs;
  std::optional<std::uint32_t> max_model_len;       // tokens of one sequence, prompt and answer
  std::optional<std::uint32_t> block_size;          // tokens
  std::string kv_cache_dtype = "f16";
  std::optional<std::uint64_t> kv_cache_memory;     // bytes
  std::string compute = "int8";
  std::uint64_t seed = 0;
  bool context_shift = false;
  std::optional<std::uint32_t> keep;                // tokens, with context_shift

  // The flags as the engine takes them. `threads` etc. were checked when parsed.
  engine::PoolConfig pool_config() const;

  // The flags as the model takes them. Errors: usage if the environment's KVASIR_ISA names a class that does not exist or
  // that this machine lacks.
  Result<model::ModelOptions> model_options() const;
};

// Those of commands whose answers may outgrow the context. Errors of check: usage for --keep without --context-shift.
void add_context_shift_options(CLI::App& command, EngineFlags& flags);

// Adds the options to a command. `flags` must outlive parsing.
void add_engine_flags(CLI::App& command, EngineFlags& flags);

}  // namespace kvasir::cli
