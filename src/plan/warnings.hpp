// What people forget about a plan, in words.
// Thread rule: pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "plan/capacity_plan.hpp"

namespace kvasir::plan {

std::vector<std::string> warnings_of(const PlanInput& input, const CapacityPlan& plan);

}  // namespace kvasir::plan
