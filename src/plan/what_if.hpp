// The same plan with other choices: how K and V are stored, how many KV heads there are, how long blocks and windows are.
// Thread rule: pure; any thread.
//
// Other heads and windows are other models: they must be trained so, and a plan says only what they would take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plan/capacity_plan.hpp"

namespace kvasir::plan {

enum class Axis : std::uint8_t { formats, heads, blocks, windows };
inline constexpr Axis kAxes[] = {Axis::formats, Axis::heads, Axis::blocks, Axis::windows};
std::string_view to_string(Axis axis);
std::optional<Axis> parse_axis(std::string_view name);

struct Alternative {
  std::vector<std::string> choices;   // one an axis asked for, in its order: "int8", "8 KV heads"; "as planned" where nothing changes
  std::uint64_t kv_bytes_per_token = 0, kv_bytes = 0, state_bytes = 0, total_bytes = 0;
  std::optional<std::uint64_t> max_sequences;   // where memory is told
};

// Every combination of what the axes offer for this model, the plan itself first. memory: bytes; 0: not asked.
// Errors: bad_input: no axis or one twice; those of plan_capacity for the plan itself. A combination that has no layout is
// left out. REQUIRES: no input.held, which is that of one layout.
Result<std::vector<Alternative>> what_if(const PlanInput& input, const std::vector<Axis>& axes, std::uint64_t memory);

}  // namespace kvasir::plan
