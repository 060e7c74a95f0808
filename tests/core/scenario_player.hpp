// Reads the text scenarios (scenarios/README.md) and plays them on the virtual-clock harness.
// Thread rule: one thread.
#pragma once

#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "tests/core/virtual_run.hpp"

namespace kvasir::core::test {

class ScenarioPlayer {
 public:
  // Carries out one command and returns what it prints. A command that is not known prints that.
  std::string play(std::istringstream& words);

 private:
  std::string configure(std::istringstream& words);
  std::string machine(std::istringstream& words);
  std::string story(const std::string& command, std::istringstream& words);
  std::string simulated(const std::string& command, std::istringstream& words);
  std::string about(const std::string& command, const std::string& name);
  std::string submit(const std::string& name, std::istringstream& words);
  std::string plan_line() const;
  std::string ended();
  std::string memory() const;
  std::string waiting() const;
  VirtualRun& run();
  const std::string& name_of(VirtualRun::ClientIndex client) const { return names_.at(client); }

  CoreConfig config_;
  sched::CostCoefficients machine_cost_;
  bool has_machine_ = false;
  std::optional<VirtualRun> run_;  // made by the first command after `config` and `machine`
  std::map<std::string, VirtualRun::ClientIndex> clients_;
  std::map<VirtualRun::ClientIndex, std::string> names_;
  std::string line_;  // of the step planned last
  std::size_t told_ended_ = 0;
};

}  // namespace kvasir::core::test
