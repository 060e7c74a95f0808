#include "cli/run_flags.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/command.hpp"
#include "cli/option_values.hpp"

namespace kvasir::cli {

engine::GenerateRequest RunFlags::request(std::vector<TokenId> prompt_ids, std::uint32_t max_model_len) const {
  engine::GenerateRequest made;
  made.max_tokens = max_tokens;
  // A prompt that leaves no room is left to the engine, which refuses it with both numbers.
  if (!max_tokens && prompt_ids.size() < max_model_len) {
    made.max_tokens = std::min(kDefaultAnswerTokens, max_model_len - static_cast<std::uint32_t>(prompt_ids.size()));
  }
  made.prompt = std::move(prompt_ids);
  if (beam.width > 1) made.beam = beam;
  made.sampling = sampling;
  made.sampling.seed = engine.seed;
  made.stop = stop;
  made.ignore_eos = ignore_eos;
  return made;
}

void add_run_flags(CLI::App& command, RunFlags& flags) {
  add_model_argument(command, flags.model);
  command.add_option("--prompt", flags.prompt, "Answer this and exit (default: stdin, or a chat on a terminal)")->type_name("TEXT");
  command.add_option("--system", flags.system, "The system message of the chat")->type_name("TEXT");
  command.add_option("--max-tokens", flags.max_tokens, "Most tokens of an answer (default 1024, or what the context leaves)")
      ->check(whole_number(1, 1u << 24))->type_name("N");
  command.add_flag("--no-chat-template", flags.no_chat_template, "Continue the prompt as it is, for base models");
  command.add_flag("--json", flags.json, "One JSON object at the end, instead of text as it comes");
  command.add_flag("--verbose", flags.verbose, "Show where the memory goes before the answer, on stderr");

  constexpr const char* kGroup = "Sampling";
  command.add_option("--temperature", flags.sampling.temperature, "0 takes the likeliest token (default 0)")
      ->check(number(0, static_cast<double>(engine::kMaxTemperature)))->type_name("X")->group(kGroup);
  command.add_option("--top-k", flags.sampling.top_k, "Draw among the k likeliest; 0 = all (default 0)")
      ->check(whole_number(0, 1u << 24))->type_name("K")->group(kGroup);
  command.add_option("--top-p", flags.sampling.top_p, "Draw among the likeliest that together reach p (default 1)")
      ->check(number(0, 1))->type_name("P")->group(kGroup);
  command.add_option("--min-p", flags.sampling.min_p, "Draw among those at least p times as likely as the likeliest (default 0)")
      ->check(number(0, 1))->type_name("P")->group(kGroup);
  CLI::Option* beams =
      command.add_option("--beams", flags.beam.width, "Answer with the best sequence of a beam search this wide; 1 = no search (default 1)")
          ->check(whole_number(1, engine::kMaxBeams))->type_name("N")->group(kGroup);
  constexpr auto kMostPenalty = static_cast<double>(engine::kMaxLengthPenalty);
  command.add_option("--length-penalty", flags.beam.length_penalty, "Of --beams: scores are divided by tokens to the power of this (default 1)")
      ->check(number(-kMostPenalty, kMostPenalty))->needs(beams)->type_name("X")->group(kGroup);
  command.add_option("--stop", flags.stop, "End the answer before this text; may be repeated")
      ->allow_extra_args(false)->take_all()->type_name("TEXT")->group(kGroup);
  command.add_option("--logprobs", flags.sampling.logprobs, "With --json: log-probabilities of each token and of the N likeliest")
      ->check(whole_number(0, engine::kMaxTopLogprobs))->type_name("N")->group(kGroup);
  command.add_flag("--ignore-eos", flags.ignore_eos, "Go on past the end-of-text token")->group(kGroup);
  add_engine_flags(command, flags.engine);
  add_context_shift_options(command, flags.engine);
  add_launch_flags(command, flags.launch);
}

}  // namespace kvasir::cli
