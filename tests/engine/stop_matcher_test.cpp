// Known fault B34: the start of a stop string must never be shown before it is known not to be one.
#include "engine/stop_matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "text/utf8.hpp"

namespace kvasir::engine {
namespace {

struct Outcome {
  std::string text;
  std::int32_t stop = -1;
  bool operator==(const Outcome&) const = default;
};

// Streams `pieces`, checking the bound on held text after each; flushes at the end if nothing matched.
Outcome stream(const std::vector<std::string>& stops, const std::vector<std::string>& pieces, bool include = false) {
  StopMatcher matcher(stops, include);
  std::size_t longest = 0;
  for (const std::string& s : stops) longest = std::max(longest, s.size());
  Outcome outcome;
  for (const std::string& piece : pieces) {
    std::string out;
    outcome.stop = matcher.push(piece, out);
    EXPECT_FALSE(text::first_invalid_utf8(out));
    outcome.text += out;
    EXPECT_LE(matcher.held(), longest == 0 ? 0 : longest - 1);
    if (outcome.stop >= 0) return outcome;
  }
  matcher.flush(outcome.text);
  EXPECT_EQ(matcher.held(), 0u);
  return outcome;
}

// The rule, by search: the stop string complete at the earliest byte, of those the longest.
// from: bytes before which no stop string may end.
Outcome by_search(const std::vector<std::string>& stops, const std::string& text, bool include = false,
                  std::size_t from = 0) {
  for (std::size_t end = from + 1; end <= text.size(); ++end) {
    std::int32_t best = -1;
    for (std::size_t i = 0; i < stops.size(); ++i) {
      if (!std::string_view(text).substr(0, end).ends_with(stops[i])) continue;
      if (best < 0 || stops[i].size() > stops[static_cast<std::size_t>(best)].size()) best = static_cast<std::int32_t>(i);
    }
    if (best >= 0) return {text.substr(0, include ? end : end - stops[static_cast<std::size_t>(best)].size()), best};
  }
  return {text, -1};
}

TEST(StopMatcher, AcrossTokens) {
  EXPECT_EQ(stream({"MNOPQ"}, {"K", "L", "MN", "OP", "QR"}), (Outcome{"KL", 0}));
  EXPECT_EQ(stream({"MNOPQ"}, {"K", "L", "MN", "OP", "QR"}, true), (Outcome{"KLMNOPQ", 0}));
}

// Before it is armed a stop string is text; one that ends later counts wherever it began.
TEST(StopMatcher, CountsOnlyWhatIsCompleteWhileArmed) {
  PhiloxSequence random(5);
  const auto letters = [&random](std::uint32_t count) {
    std::string s;
    for (std::uint32_t i = 0; i < count; ++i) s += static_cast<char>('a' + random.below(2));
    return s;
  };
  int matched = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::string> stops = {letters(1 + random.below(5)), letters(2 + random.below(4))};
    const std::string text = letters(12);
    const std::size_t armed_from = random.below(12);
    StopMatcher matcher(stops);
    Outcome got;
    for (std::size_t i = 0; i < text.size() && got.stop < 0; ++i) {
      got.stop = matcher.push(text.substr(i, 1), got.text, i >= armed_from);
      EXPECT_LT(matcher.held(), std::max(stops[0].size(), stops[1].size()));
    }
    if (got.stop < 0) matcher.flush(got.text);
    ASSERT_EQ(got, by_search(stops, text, false, armed_from)) << text << " armed from " << armed_from;
    matched += got.stop >= 0;
  }
  EXPECT_GT(matched, 500);
}

TEST(StopMatcher, NearMissIsDeliveredInFull) {
  EXPECT_EQ(stream({"MNOPX"}, {"KL", "MN", "OP", "QR"}), (Outcome{"KLMNOPQR", -1}));
}

TEST(StopMatcher, InsideOneToken) { EXPECT_EQ(stream({"NO"}, {"KLMNOPQR"}), (Outcome{"KLM", 0})); }

TEST(StopMatcher, OverlappingStops) {
  EXPECT_EQ(stream({"MNOPQ", "OP"}, {"KLMN", "OPQR"}), (Outcome{"KLMN", 1}));   // complete first
  EXPECT_EQ(stream({"OPQ", "MNOPQ"}, {"KLMN", "OPQR"}), (Outcome{"KL", 1}));    // complete together: the longest
}

TEST(StopMatcher, HeldTextThatEndsTheAnswerIsDelivered) {
  EXPECT_EQ(stream({"MNOPQ"}, {"KLM", "NOP"}), (Outcome{"KLMNOP", -1}));
  EXPECT_EQ(stream({"MNOPQ"}, {"KLM", "NOPQ"}), (Outcome{"KL", 0}));   // ends exactly at the budget
}

TEST(StopMatcher, SelfOverlap) {
  EXPECT_EQ(stream({"aab"}, {"a", "a", "a", "b", "c"}), (Outcome{"a", 0}));
  EXPECT_EQ(stream({"abab!"}, {"ababab!"}), (Outcome{"ab", 0}));
}

TEST(StopMatcher, MultiByteCharacters) {
  EXPECT_EQ(stream({"é!"}, {"caf", "é", "è", "é", "!"}), (Outcome{"caféè", 0}));
  EXPECT_EQ(stream({"🦀"}, {"a🦁", "b", "🦀c"}), (Outcome{"a🦁b", 0}));
  EXPECT_EQ(stream({"\u3042\u3044"}, {"\u3042", "\u3042", "\u3044"}), (Outcome{"\u3042", 0}));
}

TEST(StopMatcher, NoStopsHoldNothing) {
  StopMatcher matcher;
  std::string out;
  EXPECT_EQ(matcher.push("abc", out), -1);
  EXPECT_EQ(out, "abc");
}

TEST(StopMatcher, HoldsExactlyTheEndThatBeginsAStop) {
  const std::vector<std::string> stops = {"MNOPQ"};
  StopMatcher matcher(stops);
  std::string out;
  EXPECT_EQ(matcher.push("KLMNO", out), -1);
  EXPECT_EQ(out, "KL");
  EXPECT_EQ(matcher.held(), 3u);
}

TEST(StopMatcher, CuttingTheTextNeverChangesTheAnswer) {
  PhiloxSequence random(1);
  int matched = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto word = [&](std::uint32_t length) {
      std::string s;
      for (std::uint32_t i = 0; i < length; ++i) s += static_cast<char>('a' + random.below(2 + round % 2));
      return s;
    };
    std::vector<std::string> stops;
    for (std::uint32_t i = 0; i <= random.below(4); ++i) stops.push_back(word(1 + random.below(6)));
    const std::string text = word(random.below(30));
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = random.below(5);   // empty pieces too
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    const bool include = round % 5 == 0;
    const Outcome expected = by_search(stops, text, include);
    ASSERT_EQ(stream(stops, pieces, include), expected);
    matched += expected.stop >= 0;
  }
  EXPECT_GT(matched, 500);
  EXPECT_LT(matched, 2900);
}

}  // namespace
}  // namespace kvasir::engine
