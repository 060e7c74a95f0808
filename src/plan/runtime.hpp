// What the runtime of a GPU of NVIDIA takes beside what an engine asks for: known as ranges only.
// Thread rule: pure; any thread.
#pragma once

#include <vector>

#include "plan/capacity_plan.hpp"

namespace kvasir::plan {

// Of one device. `bytes` is the high end of each, low_bytes the low one. communicates: with other devices.
std::vector<PlanLine> runtime_lines(bool communicates);

}  // namespace kvasir::plan
