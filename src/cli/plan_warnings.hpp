// The usual mistakes of people who size a cache, each with its number.
// Thread rule: pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "cli/plan_answer.hpp"

namespace kvasir::cli {

// REQUIRES: planned is complete but for its warnings.
std::vector<std::string> plan_warnings(const Planned& planned);

}  // namespace kvasir::cli
