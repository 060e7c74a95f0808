// A page that stands alone: style inside, no script, nothing fetched. Opens from a file, prints, and goes by mail.
// Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvasir::report {

struct HtmlSection {
  std::string heading;       // text; empty: none
  std::string preformatted;  // text, as on a terminal; empty: none
  std::string markup;        // trusted: of report/svg_plot.hpp
};

// title and all text are escaped. Begins with <!doctype html>, ends in a newline.
std::string html_page(std::string_view title, const std::vector<HtmlSection>& sections);

}  // namespace kvasir::report
