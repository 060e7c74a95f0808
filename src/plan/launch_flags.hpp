// A plan as command lines: what to paste to serve it, with this engine and with others.
// Thread rule: pure; any thread.
// Sources: `kvasir serve --help`; vLLM 0.32 (vllm/engine/arg_utils.py, config/cache.py); SGLang's page "Server Arguments";
// llama.cpp 80fb11a (`llama-server --help`).
#pragma once

#include <string>
#include <vector>

#include "plan/capacity_plan.hpp"
#include "plan/parallel.hpp"

namespace kvasir::plan {

struct LaunchCommand {
  std::string engine;               // "kvasir", "vllm", "sglang", "llama.cpp"
  std::string command;
  std::vector<std::string> notes;   // what of the plan this engine cannot do or counts differently
};

struct Launch {
  std::string model;                        // as the command lines should name it, a path or a name
  bool is_name = false;                     // of the table of known models
  bool is_changed = false;                  // fields of it were set by hand
  const PlanInput& input;
  const CapacityPlan& plan;                 // of input
  const ParallelPlan* parallel = nullptr;   // where there are several devices
};

std::vector<LaunchCommand> launch_commands(const Launch& launch);

}  // namespace kvasir::plan
