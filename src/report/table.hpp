// Aligned tables for terminals.
// Thread rule: a value; one thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::report {

enum class Align { left, right };

struct Column {
  std::string title;             // all titles empty: no header line
  Align align = Align::left;
};

class Table {
 public:
  // REQUIRES: at least one column.
  explicit Table(std::vector<Column> columns);

  // REQUIRES: one cell a column. Control characters in cells (a model file may hold any) are shown as escapes.
  void add_row(std::vector<std::string> cells);
  // A line between the rows before and after it: above a sum.
  void add_rule();

  // Every line ends in '\n' and has no trailing spaces; columns are two spaces apart, each as wide as its widest cell
  // (counted in code points).
  std::string render() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;   // an empty row is a rule
};

// Code points of UTF-8 text; a byte that starts none counts as one.
std::size_t display_width(std::string_view text);

// Text from outside, safe to show: control characters as \n, \x1b. Everything else as it is.
std::string printable(std::string_view text);

// The first `width` code points, with "..." in place of what was cut. REQUIRES: width >= 3.
std::string shorten(std::string_view text, std::size_t width);

}  // namespace kvasir::report
