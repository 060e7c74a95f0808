// A run as a page: the table, the distributions of TTFT and ITL, and every request on a timeline.
// Pure functions, any thread.
#pragma once

#include <string>

#include "load/record.hpp"

namespace kvasir::load {

// title: one line of text. table: as on the terminal (load/result_table.hpp).
std::string latency_page(const std::string& title, const std::string& table, const RunRecord& run);

}  // namespace kvasir::load
