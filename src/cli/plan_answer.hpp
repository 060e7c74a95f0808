// What `kvasir plan` answers, and how it is shown. plan_json.cpp and plan_text.cpp show it.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/plan_device.hpp"
#include "cli/plan_flags.hpp"
#include "plan/capacity_plan.hpp"
#include "plan/launch_flags.hpp"
#include "plan/what_if.hpp"
#include "report/json.hpp"

namespace kvasir::cli {

// What --memory, or a device's, makes of a plan. With several devices: of the worst of them. With a mix, max_sequences is the
// number expected and longest_length none.
struct Fit {
  bool fits = false;
  std::uint64_t max_sequences = 0;
  std::optional<std::uint64_t> longest_length;
  std::uint64_t used = 0, free = 0;   // bytes of one device; used + free = memory where it fits
};

// One table of --what-if.
struct WhatIfTable {
  std::vector<plan::Axis> axes;
  std::vector<plan::Alternative> rows;
};

// What is printed.
struct Planned {
  plan::PlanInput input;
  plan::CapacityPlan plan;
  PlannedDevice device;
  std::optional<Fit> fit;
  std::optional<MixAnswer> mix;
  std::vector<std::string> warnings;
  std::vector<WhatIfTable> what_if;
  std::vector<plan::LaunchCommand> launch;
};

// Errors: of the model, of an option, of the sizes: see read_planned_model, parse_kv_format, plan_capacity.
Result<Planned> answer_plan(const PlanFlags& flags);

// The documented keys of --json.
report::Json plan_json(const PlanFlags& flags, const Planned& planned);
void print_plan(const PlanFlags& flags, const Planned& planned, std::ostream& out);
// The page of --html.
std::string plan_html(const PlanFlags& flags, const Planned& planned);

}  // namespace kvasir::cli
