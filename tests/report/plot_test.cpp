#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "report/html_page.hpp"
#include "report/svg_plot.hpp"

namespace kvasir::report {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++found;
  return found;
}

TEST(Markup, EscapesWhatWouldBeMarkup) {
  EXPECT_EQ(escape_markup("<a href=\"x\">'&\x01\n"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\n");
}

// Two values: half of them at or below 10 ms, all at or below 1 s; the axis runs from one to the other.
TEST(CdfSvg, StepsStandWhereTheValuesAre) {
  const std::string svg = cdf_svg("t", {{"TTFT", {1, 0.01}}});
  EXPECT_THAT(svg, HasSubstr("d=\"M56.0 284.0 H56.0 V159.0 H844.0 V34.0\""));
  EXPECT_THAT(svg, HasSubstr(">10.0 ms<"));
  EXPECT_THAT(svg, HasSubstr(">100 ms<"));
  EXPECT_THAT(svg, HasSubstr(">1.00 s<"));
  EXPECT_THAT(svg, HasSubstr(">TTFT<"));
}

TEST(CdfSvg, LeavesOutWhatHasNoPlaceOnALogarithm) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string plain = cdf_svg("t", {{"a", {1, 2}}}),
                    odd = cdf_svg("t", {{"a", {0, 1, -3, 2, infinity, std::nan("")}}});
  EXPECT_EQ(odd, plain);
  EXPECT_THAT(odd, Not(HasSubstr("nan")));
  EXPECT_THAT(odd, Not(HasSubstr("inf")));
}

TEST(CdfSvg, EqualValuesStillHaveAnAxis) { EXPECT_THAT(cdf_svg("t", {{"a", {3, 3, 3}}}), Not(HasSubstr("nan"))); }

TEST(CdfSvg, NothingSaysSo) {
  EXPECT_THAT(cdf_svg("t", {}), HasSubstr("nothing to show"));
  EXPECT_THAT(cdf_svg("t", {{"a", {}}, {"b", {0}}}), HasSubstr("nothing to show"));
}

TEST(CdfSvg, ThinsLongSamplesAndKeepsTheirEnds) {
  std::vector<double> values;
  for (int i = 1; i <= 100'000; ++i) values.push_back(i * 1e-4);
  const std::string svg = cdf_svg("t", {{"a", values}});
  EXPECT_LT(svg.size(), 20'000u);
  EXPECT_THAT(svg, HasSubstr("H844.0 V34.0\""));
}

TEST(TimelineSvg, ShowsWhatHeldARequestUp) {
  const std::string svg =
      timeline_svg("t", {{0, 0, 2, 8, false, "quick & easy"}, {0, 4, 6, 8, false, "held"}, {1, 1, 1, 3, true, "lost"}});
  EXPECT_EQ(count(svg, "<g>"), 3u);
  EXPECT_EQ(count(svg, "#b8b8b8"), 1u);  // held back
  EXPECT_EQ(count(svg, "#e8b34b"), 2u);  // waiting
  EXPECT_EQ(count(svg, "#c0392b"), 1u);  // failed
  EXPECT_THAT(svg, HasSubstr("<title>quick &amp; easy</title>"));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"56.00\" y=\"34.00\" width=\"197.00\""));  // a quarter of the width
}

TEST(TimelineSvg, TellsHowManyOfManyItShows) {
  std::vector<TimelineBar> bars(1000, TimelineBar{0, 0, 1, 2, false, "x"});
  const std::string svg = timeline_svg("t", bars);
  EXPECT_EQ(count(svg, "<g>"), 400u);
  EXPECT_THAT(svg, HasSubstr("400 of 1000 requests"));
  EXPECT_THAT(timeline_svg("t", {}), HasSubstr("nothing to show"));
}

TEST(HtmlPage, StandsAloneAndEscapesItsText) {
  const std::string page = html_page("a < b", {{"head & tail", "x > y", "<svg></svg>"}, {"", "", "<p>only</p>"}});
  EXPECT_THAT(page, testing::StartsWith("<!doctype html>\n"));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
  for (const char* text : {"<title>a &lt; b</title>", "<h1>a &lt; b</h1>", "<h2>head &amp; tail</h2>",
                           "<pre>x &gt; y</pre>", "<svg></svg>", "<p>only</p>"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
  EXPECT_EQ(count(page, "<h2>"), 1u);
  for (const char* outside : {"<script", "src=", "href=", "url(", "@import", "<link"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
}

}  // namespace
}  // namespace kvasir::report
