// The options of `kvasir run`, and the request that they make of a prompt.
// Thread rule: a value; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/engine_flags.hpp"
#include "cli/record_flags.hpp"
#include "engine/request.hpp"

namespace CLI {
class App;
}

namespace kvasir::cli {

// An answer without --max-tokens ends here, or where the context does.
inline constexpr std::uint32_t kDefaultAnswerTokens = 1024;

struct RunFlags {
  std::string model;
  std::optional<std::string> prompt;
  std::string system;                      // --system, empty = what the chat template says
  std::optional<std::uint32_t> max_tokens;
  engine::SamplingParams sampling;         // seed: from the engine flags
  engine::BeamParams beam{.width = 1};     // 1: no search
  std::vector<std::string> stop;
  bool no_chat_template = false;
  bool ignore_eos = false;
  bool json = false;
  bool verbose = false;
  EngineFlags engine;
  LaunchFlags launch;

  // `max_model_len`: tokens of one sequence. Without --max-tokens the limit is what the context leaves, at most
  // kDefaultAnswerTokens.
  engine::GenerateRequest request(std::vector<TokenId> prompt_ids, std::uint32_t max_model_len) const;
};

void add_run_flags(CLI::App& command, RunFlags& flags);

}  // namespace kvasir::cli
