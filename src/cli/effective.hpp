// What the settings came to, and where the memory went: the parts of an answer that every engine command shares.
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/engine.hpp"
#include "report/json.hpp"

namespace kvasir::cli {

// isa, threads, block_tokens, max_num_batched_tokens, kv_cache_dtype, steps and the rest of EffectiveSettings.
report::Json effective_json(const engine::EffectiveSettings& settings);

// {"lines": [{name, computed_bytes, real_bytes, how}], "total_bytes", "runtime_bytes", "resident_bytes"}
// runtime_bytes: measured, without weights and engine: program, libraries, tokenizer (ProcessMemory in cli/loading.hpp). resident_bytes: of the process now.
report::Json memory_json(std::span<const engine::MemoryLine> lines, std::uint64_t runtime_bytes, std::uint64_t resident_bytes);

// The same as a table for people.
std::string memory_table(std::span<const engine::MemoryLine> lines, std::uint64_t runtime_bytes, std::uint64_t resident_bytes);

}  // namespace kvasir::cli
