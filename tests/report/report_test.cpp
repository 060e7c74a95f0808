#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "report/json.hpp"
#include "report/numbers.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

namespace kvasir::report {
namespace {

TEST(Numbers, CountsAreGroupedByThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(134'515'008), "134,515,008");
  EXPECT_EQ(format_count(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(Numbers, SecondsChangeUnitWithoutFourDigitSteps) {
  EXPECT_EQ(format_seconds(0), "0.00 us");
  EXPECT_EQ(format_seconds(12.345e-6), "12.3 us");
  EXPECT_EQ(format_seconds(999.4e-6), "999 us");
  EXPECT_EQ(format_seconds(999.6e-6), "1.00 ms");
  EXPECT_EQ(format_seconds(0.0456), "45.6 ms");
  EXPECT_EQ(format_seconds(1.234), "1.23 s");
  EXPECT_EQ(format_seconds(99.96), "1 min 40 s");
  EXPECT_EQ(format_seconds(125), "2 min 05 s");
  EXPECT_EQ(format_seconds(-1), "-");
  EXPECT_EQ(format_seconds(std::nan("")), "-");
}

TEST(Numbers, RatesKeepThreeDigits) {
  EXPECT_EQ(format_rate(7.418), "7.42");
  EXPECT_EQ(format_rate(98.06), "98.1");
  EXPECT_EQ(format_rate(999.6), "1,000");
  EXPECT_EQ(format_rate(1241.3), "1,241");
  EXPECT_EQ(format_rate(0), "-");
  EXPECT_EQ(format_rate(std::numeric_limits<double>::infinity()), "-");
}

TEST(TableTest, AlignsColumnsAndLeavesNoTrailingSpaces) {
  Table table({{"name", Align::left}, {"bytes", Align::right}});
  table.add_row({"weights", "96.0 MiB"});
  table.add_row({"kv", "8 B"});
  table.add_rule();
  table.add_row({"", "all"});
  EXPECT_EQ(table.render(),
            "name        bytes\n"
            "-------  --------\n"
            "weights  96.0 MiB\n"
            "kv            8 B\n"
            "-------  --------\n"
            "              all\n");
}

TEST(TableTest, WithoutTitlesThereIsNoHeader) {
  Table table({{"", Align::left}, {"", Align::left}});
  table.add_row({"a", "b"});
  EXPECT_EQ(table.render(), "a  b\n");
}

TEST(TableTest, WidthCountsCodePointsNotBytes) {
  Table table({{"", Align::left}, {"", Align::left}});
  table.add_row({"\xC3\xA9t\xC3\xA9", "x"});   // three characters, five bytes
  table.add_row({"abcd", "y"});
  EXPECT_EQ(table.render(), "\xC3\xA9t\xC3\xA9   x\nabcd  y\n");
}

TEST(TableTest, AModelFileCannotSendTerminalCommands) {
  Table table({{"", Align::left}});
  table.add_row({"a\x1b[31m\nb"});
  EXPECT_EQ(table.render(), "a\\x1b[31m\\nb\n");
}

TEST(TableTest, ShortenCutsBetweenCharacters) {
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("abcdef", 5), "ab...");
  EXPECT_EQ(shorten("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 5), "\xC3\xA9\xC3\xA9...");
}

TEST(Progress, TextHasShareAndTimeLeft) {
  EXPECT_EQ(progress_text("reading", 12, 48, "windows", 3), "reading  [######..................]  25%  12/48 windows  3.00 s, 9.00 s left");
  EXPECT_EQ(progress_text("reading", 48, 48, "windows", 3), "reading  [########################]  100%  48/48 windows  3.00 s");
  EXPECT_EQ(progress_text("reading", 7, 0, "windows", 3), "reading  7 windows  3.00 s");
}

TEST(Progress, WritesNothingUnlessVisible) {
  std::ostringstream out;
  {
    ProgressLine line(out, false, "reading", "windows");
    line.update(1, 2, 1);
  }
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, RedrawsAtMostTenTimesASecondAndClearsItself) {
  std::ostringstream out;
  ProgressLine line(out, true, "r", "w");
  line.update(1, 9, 0.00);
  const std::string first = out.str();
  line.update(2, 9, 0.05);
  EXPECT_EQ(out.str(), first);
  line.update(3, 9, 0.15);
  EXPECT_NE(out.str(), first);
  line.update(9, 9, 0.16);
  EXPECT_NE(out.str().find("9/9 w"), std::string::npos);
  line.clear();
  EXPECT_EQ(out.str().back(), '\r');
}

TEST(JsonTest, KeepsKeyOrderAndIsAlwaysValid) {
  Json object;
  object["z"] = 1;
  object["a"] = std::string("ok \xff end");
  object["n"] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_json_line(object), "{\"z\":1,\"a\":\"ok \xEF\xBF\xBD end\",\"n\":null}");
}

}  // namespace
}  // namespace kvasir::report
