// A plan to look at: a bar for the terminal and a page with pictures.
// Thread rule: pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "plan/capacity_plan.hpp"
#include "report/stacked_bar.hpp"

namespace kvasir::plan {

// The plan's lines in at most six classes: weights, cache, states, step and tables, runtime, reserve. Classes without bytes
// are left out.
std::vector<report::Segment> segments_of(const CapacityPlan& plan);

struct PlanPage {
  std::string title;   // one line
  std::string table;   // of the lines, as on the terminal
  std::string rest;    // what else was answered, as on the terminal; may be empty
};

// One self-contained HTML file: the plan as a column, memory by number of sequences and by length beside what there is,
// and the tables. plan: of input. memory: bytes, 0: not told.
std::string plan_page(const PlanPage& page, const PlanInput& input, const CapacityPlan& plan, std::uint64_t memory);

}  // namespace kvasir::plan
