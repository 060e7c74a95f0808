// A plan as command lines: what to paste to serve it, with this engine and with others.
// Thread rule: pure; any thread.
// Sources: `kvasir serve --help`; vLLM 0.32 (vllm/engine/arg_utils.py, config/cache.py); SGLang's page "Server Arguments";
// llama.cpp 80fb11a (`llama-server --help`).
#pragma once

#include <string>
#include <vector>

#include "plan/capacity_plan.hpp"

namespace kvasir::plan {

struct LaunchCommand {
  std::string engine;               // "kvasir", "vllm", "sglang", "llama.cpp"
  std::string command;
  std::vector<std::string> notes;   // what of the plan this engine cannot do or counts differently
};

// model: as the command lines should name it, a path or a name.
std::vector<LaunchCommand> launch_commands(const std::string& model, const PlanInput& input, const CapacityPlan& plan);

}  // namespace kvasir::plan
