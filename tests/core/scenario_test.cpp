// Plays the text scenarios beside this file: arrivals, steps and hang-ups under virtual time, and what must come of
// them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/core.hpp"

namespace kvasir::core {
namespace {

std::string_view to_string(sched::WaitReason reason) {
  switch (reason) {
    case sched::WaitReason::none:
      return "none";
    case sched::WaitReason::sequence_limit:
      return "sequence_limit";
    case sched::WaitReason::token_budget:
      return "token_budget";
    case sched::WaitReason::blocks:
      return "blocks";
    case sched::WaitReason::never_fits:
      return "never_fits";
  }
  return "?";
}

class Player {
 public:
  // Carries out one command and returns what it prints.
  std::string play(std::istringstream& words) {
    std::string command, name;
    words >> command;
    if (command == "config") return configure(words);
    if (command == "memory") return memory();
    if (command == "ended") return ended();
    if (command == "plan" || command == "step") {
      std::uint64_t now = 0;
      words >> now;
      std::string chunks = plan(now);
      if (command == "step" && core().step_in_flight()) apply();
      return chunks;
    }
    if (command == "apply") return apply();
    if (command == "abandon") return core().abandon(), "";
    words >> name;
    if (command == "submit") return submit(name, words);
    if (command == "cancel") return core().cancel(ids_.at(name)) ? "" : "unknown";
    if (command == "stop") return stops_.insert(name), "";
    return "no such command: " + command;
  }

  Core& core() { return core_.at(0); }
  void check() {
    if (!core_.empty()) core().check_invariants();
  }

 private:
  std::string configure(std::istringstream& words) {
    std::map<std::string, std::uint32_t> value = {{"reserved", 0}, {"align", 1}};
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      value[word.substr(0, equals)] = static_cast<std::uint32_t>(std::stoul(word.substr(equals + 1)));
    }
    CoreConfig config;
    config.cache.groups = {{value.at("block_tokens"), value.at("blocks"), value.at("reserved")}};
    config.cache.max_sequence_rows = value.at("context");
    config.limits = {value.at("seqs"), value.at("tokens"), value.at("align")};
    core_.push_back(Core::create(config).value());
    return "";
  }

  std::string submit(const std::string& name, std::istringstream& words) {
    std::size_t prompt = 0;
    std::uint64_t max_new = 0;
    words >> prompt >> max_new;
    const Result<RequestId> id = core().submit({std::vector<TokenId>(prompt, 1), max_new});
    if (!id.ok()) return id.error().message;
    ids_[name] = *id;
    names_[*id] = name;
    return "queued";
  }

  std::string plan(std::uint64_t now) {
    const sched::StepPlan& plan = core().plan(now);
    std::string text;
    for (const sched::Chunk& c : plan.chunks)
      text += fmt::format("{}[{},{}){} ", names_.at(c.request), c.first_position, c.first_position + c.token_count,
                          c.wants_logits ? "*" : "");
    if (plan.chunks.empty()) text += "idle ";
    if (plan.waiting != sched::WaitReason::none) text += fmt::format("wait {} ", to_string(plan.waiting));
    if (plan.waiting == sched::WaitReason::blocks) text += fmt::format("({} > {}) ", plan.head.wanted, plan.head.have);
    text.pop_back();
    return text;
  }

  std::string apply() {
    std::vector<TokenResult> results;
    for (const sched::Chunk& c : core().current_plan().chunks)
      if (c.wants_logits) results.push_back({c.request, 7, stops_.erase(names_.at(c.request)) > 0});
    core().apply(results);
    return "";
  }

  std::string ended() {
    std::string text;
    while (!core().finished().empty()) {
      const RequestId id = core().finished().front();
      const Request& request = *core().find(id);
      text += fmt::format("{}{}={}/{}", text.empty() ? "" : " ", names_.at(id), core::to_string(request.reason),
                          request.generated());
      core().forget(id);
    }
    return text.empty() ? "nobody" : text;
  }

  std::string memory() {
    const cache::GroupStats s = core().cache().stats(0);
    return fmt::format("{} + {} + {} + {} = {}, claimed {}", s.pool.active, s.pool.cached, s.pool.free,
                       s.pool.quarantined, s.pool.total, s.claimed);
  }

  std::vector<Core> core_;  // none before `config`
  std::map<std::string, RequestId> ids_;
  std::map<RequestId, std::string> names_;
  std::set<std::string> stops_;
};

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
  Player player;
  int number = 0, checked = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t arrow = line.find("=>");
    std::istringstream words(line.substr(0, arrow));
    const std::string expected = arrow == std::string::npos ? "" : trimmed(line.substr(arrow + 2));
    ASSERT_EQ(player.play(words), expected) << GetParam() << ".txt:" << number;
    player.check();
    ++checked;
  }
  EXPECT_GT(checked, 5) << "a scenario says something";
}

INSTANTIATE_TEST_SUITE_P(Core, Scenario, ::testing::ValuesIn(scenario_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace kvasir::core
