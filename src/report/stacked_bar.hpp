// Amounts that add up, as one bar on a terminal and as columns of a picture.
// Pure functions, any thread. Amounts: any unit, all the same; a sum that overflows 64 bits is drawn as the largest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::report {

struct Segment {
  std::string name;
  std::uint64_t amount = 0;
  std::string shown;   // the amount for people: "1.50 GiB"
};

struct Stack {
  std::string label;   // beside the bar or below the column; may be empty
  std::vector<Segment> segments;
};

// Where memory or money ends. amount 0: no limit.
struct Limit {
  std::uint64_t amount = 0;
  std::string shown;
};

// Two lines: the bar, `width` characters from 0 to the limit or the sum, whichever is more, with a '|' where the limit is
// and the rest of the memory as dots; and what each filling stands for. An amount above 0 has at least one character
// where there is room. At most six segments are told apart. No colours. REQUIRES: width >= 10.
std::string stacked_bar(const std::vector<Segment>& segments, const Limit& limit, std::size_t width);

// The same as one horizontal bar of a picture.
std::string stacked_bar_svg(std::string_view title, const std::vector<Segment>& segments, const Limit& limit);

// A column a stack, the same names in the same colours, and the limit as a line across. Lengths of columns compare.
std::string stacked_columns_svg(std::string_view title, const std::vector<Stack>& stacks, const Limit& limit);

}  // namespace kvasir::report
