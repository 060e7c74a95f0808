// Plays the text scenarios beside this file: arrivals, steps and hang-ups under virtual time, and what must come of
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/core/scenario_player.hpp"

namespace kvasir::core::test {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(KVASIR_SOURCE_DIR "/tests/core/scenarios"))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

class Scenario : public ::testing::TestWithParam<std::string> {};

TEST_P(Scenario, GoesAsWritten) {
  std::ifstream file(KVASIR_SOURCE_DIR "/tests/core/scenarios/" + GetParam() + ".txt");
  ScenarioPlayer player;
  int number = 0, checked = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t arrow = line.find("=>");
    std::istringstream words(line.substr(0, arrow));
    const std::string expected = arrow == std::string::npos ? "" : trimmed(line.substr(arrow + 2));
    ASSERT_EQ(player.play(words), expected) << GetParam() << ".txt:" << number;
    ++checked;
  }
  EXPECT_GT(checked, 5) << "a scenario says something";
}

INSTANTIATE_TEST_SUITE_P(Core, Scenario, ::testing::ValuesIn(scenario_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace kvasir::core::test
