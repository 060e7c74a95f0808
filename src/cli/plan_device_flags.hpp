// The options of `kvasir plan` about the machine: device, rates, layout over several, and what else takes memory there.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "plan/capacity_plan.hpp"
#include "plan/parallel.hpp"
#include "plan/roofline.hpp"

namespace CLI {
class App;
}

namespace kvasir::cli {

struct PlanDeviceFlags {
  std::string device;    // empty: not asked
  double bandwidth = 0;  // 10^9 bytes/s; 0: the device's
  double peak = 0;       // 10^12 operations/s; 0: the device's
  double efficiency = 1;
  double target_itl = 0;                             // ms; 0: not asked
  std::uint32_t tensor = 0, pipeline = 0, data = 0;  // 0: 1, or by the device's number
  bool expert = false;
  bool runtime = false;  // a GPU's lines though no GPU was named
  std::uint32_t speculative_tokens = 0, n = 1, beams = 1;
  std::uint64_t prompt_length = 0;  // 0: not said
  std::string reserve;              // a size or a percentage of the memory
  std::string skip_layers;
};

// flags must outlive the parse.
void add_plan_device_flags(CLI::App& app, PlanDeviceFlags& flags);

// "8GiB" or "5%" of `memory` (0: unknown). Errors: usage.
Result<std::uint64_t> parse_reserve(const std::string& text, std::uint64_t memory);

// "0,2-4,sliding_window" into `kv`. Errors: usage naming the part.
Status parse_skip_layers(const std::string& text, plan::KvChoice& kv);

}  // namespace kvasir::cli
