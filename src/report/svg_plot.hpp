// Plots as inline SVG from plain data: no script, no external resource, light and dark by the page's own colours.
// Pure functions, any thread. Sizes are bounded: curves are thinned to 400 points, timelines to 400 rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvasir::report {

struct Curve {
  std::string name;
  std::vector<double> seconds;  // in any order; values that are not positive and finite are left out
};

// The share of values at or below each duration: durations along a logarithmic axis, the share from 0 to 100 %.
// At most four curves are told apart by colour. No values: a plot that says so.
std::string cdf_svg(std::string_view title, std::vector<Curve> curves);

// One request on a timeline, seconds since the start: due, sent, first token, last token.
struct TimelineBar {
  double due = 0, sent = 0, first = 0, end = 0;
  bool failed = false;  // from sent to end, in one colour
  std::string label;    // shown when the pointer rests on it
};

// Bars in the order given, top to bottom: held back, waiting for the first token, generating.
std::string timeline_svg(std::string_view title, const std::vector<TimelineBar>& bars);

// Text as it may stand in HTML and SVG: & < > " ' escaped, control characters dropped.
std::string escape_markup(std::string_view text);

}  // namespace kvasir::report
