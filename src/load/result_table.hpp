// A run's result for people. Pure functions, any thread.
#pragma once

#include <string>

#include "load/metrics.hpp"
#include "load/result_json.hpp"

namespace kvasir::load {

// Counts and rates, then a table of latencies, then errors by kind with the first message of each. Ends in a newline.
std::string result_table(const RunRecord& run, const Metrics& metrics, const MetricOptions& options,
                         const RunDescription& description);

}  // namespace kvasir::load
