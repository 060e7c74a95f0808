// Bars of amounts that add up.
#include "report/stacked_bar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "report/table.hpp"

namespace kvasir::report {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string bar_of(const std::string& two_lines) { return two_lines.substr(0, two_lines.find('\n')); }

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++found;
  return found;
}

TEST(StackedBar, SharesAreProportional) {
  const std::string text = stacked_bar({{"a", 5, "5 B"}, {"b", 3, "3 B"}, {"c", 2, "2 B"}}, {}, 20);
  EXPECT_EQ(text, "██████████▓▓▓▓▓▓▒▒▒▒\n█ a 5 B   ▓ b 3 B   ▒ c 2 B\n");
}

TEST(StackedBar, WhatIsLeftOfTheLimitIsDotted) {
  EXPECT_EQ(bar_of(stacked_bar({{"a", 5, ""}}, {10, "10 B"}, 10)), "█████·····| 10 B");
}

TEST(StackedBar, TheLimitStandsInsideWhereItIsExceeded) {
  EXPECT_EQ(bar_of(stacked_bar({{"a", 5, ""}, {"b", 15, ""}}, {10, "10 B"}, 20)), "█████▓▓▓▓▓|▓▓▓▓▓▓▓▓▓▓  | = 10 B");
  EXPECT_EQ(bar_of(stacked_bar({{"a", 10, ""}, {"b", 10, ""}}, {10, "10 B"}, 20)), "██████████|▓▓▓▓▓▓▓▓▓▓  | = 10 B") << "on the seam of two";
}

TEST(StackedBar, SmallAmountsAreSeenAndTheBarKeepsItsLength) {
  const std::string bar = bar_of(stacked_bar({{"a", 1'000'000, ""}, {"b", 1, ""}, {"c", 1, ""}, {"d", 0, ""}}, {}, 12));
  EXPECT_EQ(bar, "██████████▓▒");
}

TEST(StackedBar, NothingAndTooMuchAreDrawn) {
  EXPECT_EQ(bar_of(stacked_bar({}, {}, 10)), "··········");
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(display_width(bar_of(stacked_bar({{"a", kMost, ""}, {"b", kMost, ""}}, {}, 10))), 10u);
}

TEST(StackedBarSvg, EachAmountHasABoxAndALegend) {
  const std::string svg = stacked_bar_svg("t", {{"a<b", 1, "1 B"}, {"c", 3, "3 B"}}, {8, "8 B"});
  EXPECT_THAT(svg, HasSubstr("width=\"98.50\""));    // an eighth of 788
  EXPECT_THAT(svg, HasSubstr("width=\"295.50\""));
  EXPECT_THAT(svg, HasSubstr(">a&lt;b 1 B<"));
  EXPECT_THAT(svg, Not(HasSubstr("a<b")));
}

TEST(StackedColumnsSvg, ColumnsShareOneScale) {
  const std::string svg = stacked_columns_svg("t", {{"1", {{"a", 2, "2 B"}, {"b", 2, "2 B"}}}, {"2", {{"a", 2, "2 B"}, {"b", 6, "6 B"}}}}, {});
  EXPECT_EQ(count(svg, "height=\"58.00\""), 3u) << "three boxes of 2 of 8 on 232 units";
  EXPECT_EQ(count(svg, "height=\"174.00\""), 1u);
}

TEST(StackedColumnsSvg, NothingIsAnEmptyPicture) { EXPECT_THAT(stacked_columns_svg("t", {}, {}), Not(HasSubstr("nan"))); }

}  // namespace
}  // namespace kvasir::report
