// The options of `kvasir plan`.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/engine_flags.hpp"
#include "cli/plan_device_flags.hpp"
#include "cli/plan_mix.hpp"
#include "cli/record_flags.hpp"
#include "format/kv_format.hpp"

namespace CLI {
class App;
}

namespace kvasir::cli {

struct PlanFlags {
  std::string model;
  std::string kv_cache_dtype = "f16";
  std::uint64_t requests = 1;
  std::uint64_t length = 0;   // 0: the model's context
  std::uint64_t memory = 0;   // bytes; 0: not asked
  std::uint32_t block_size = 32;
  std::uint32_t max_num_batched_tokens = 512;
  std::uint32_t threads = default_threads();
  std::vector<std::string> set;
  MixFlags mix;
  bool json = false;
  std::string what_if;   // axes, joined by commas; "each": one at a time; empty: not asked
  bool launch = false;
  std::string html;      // a file; empty: none
  PlanDeviceFlags on;
  PlanRecordFlags record;
};

// flags must outlive the parse.
void add_plan_flags(CLI::App& app, PlanFlags& flags);

// "int8", or K and V apart as "int8/f16". Errors: usage, naming what would be valid.
Result<format::KvFormat> parse_kv_format(const std::string& text);

}  // namespace kvasir::cli
