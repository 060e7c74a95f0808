#include "base/suggestion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir {
namespace {

using testing::ElementsAre;

TEST(Suggestion, EditDistanceCountsSwapsAsOne) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("inspcet", "inspect"), 1u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
}

TEST(Suggestion, NearestPrefersABegunWord) {
  const std::vector<std::string> words = {"--top-k", "--temperature", "--threads"};
  EXPECT_EQ(nearest("--temp", words), "--temperature");
  EXPECT_EQ(nearest("--treads", words), "--threads");
  EXPECT_EQ(nearest("--topk", words), "--top-k");
  EXPECT_EQ(nearest("--x", {}), "");
}

TEST(Suggestion, TheNearestFewComeInOrderAndEqualsAsGiven) {
  const std::vector<std::string> words = {"layer", "heads", "layers", "lawyers"};
  EXPECT_THAT(nearest_few("layres", words, 3), ElementsAre("layers", "layer", "lawyers"));
  EXPECT_THAT(nearest_few("ab", {"ac", "ad", "ae"}, 2), ElementsAre("ac", "ad"));
  EXPECT_THAT(nearest_few("ab", {"ac"}, 5), ElementsAre("ac"));
}

}  // namespace
}  // namespace kvasir
