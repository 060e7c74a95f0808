#include "load/workload.hpp"

#include <nlohmann/json.hpp>

namespace kvasir::load {
namespace {

using Json = nlohmann::ordered_json;

Error usage(std::string message) { return {ErrorCode::usage, std::move(message)}; }

}  // namespace

Result<Workload> Workload::create(Plan plan, PromptSource source, const SharingOptions& sharing,
                                  const BodyOptions& options) {
  if (!source.is_text() && options.api == client::Api::chat) {
    return usage(
        "chat messages are text, prompts of token ids need the completions endpoint; valid: words, or a text file");
  }
  for (const Conversation& conversation : plan.conversations) {
    if (!source.is_text() && conversation.turns.size() > 1) {
      return usage(
          "a later turn repeats the answer before it, which is text, not token ids; valid: words, or a text file");
    }
  }
  if (!options.extra.empty() && !Json::parse(options.extra, nullptr, false).is_object()) {
    return usage("the extra body is no JSON object: '" + options.extra + "'; valid: {\"top_k\": 20}");
  }
  return Workload(std::move(plan), std::move(source), sharing, options);
}

std::string Workload::body(std::size_t conversation, std::size_t turn, std::span<const std::string> answers) const {
  KV_CHECK(answers.size() >= turn, "a turn follows the answers before it");
  const auto segments = [&](std::size_t which) { return prompt_segments(plan_, conversation, which, sharing_); };
  const std::uint32_t output_tokens = plan_.conversations[conversation].turns[turn].output_tokens;
  Json body;
  body["model"] = options_.model;
  if (options_.api == client::Api::chat) {
    Json messages = Json::array();
    for (std::size_t i = 0; i <= turn; ++i) {
      messages.push_back({{"role", "user"}, {"content", source_.text(segments(i))}});
      if (i < turn) messages.push_back({{"role", "assistant"}, {"content", answers[i]}});
    }
    body["messages"] = std::move(messages);
    body["max_completion_tokens"] = output_tokens;
    body["max_tokens"] = output_tokens;  // the older name, for servers that know only that
  } else if (source_.is_text()) {
    std::string prompt;
    for (std::size_t i = 0; i <= turn; ++i) prompt += source_.text(segments(i)) + (i < turn ? answers[i] + "\n" : "");
    body["prompt"] = std::move(prompt);
    body["max_tokens"] = output_tokens;
  } else {
    body["prompt"] = source_.ids(segments(turn));
    body["max_tokens"] = output_tokens;
  }
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  if (options_.ignore_eos) body["ignore_eos"] = true;
  if (options_.temperature) body["temperature"] = *options_.temperature;
  if (!options_.extra.empty()) body.update(Json::parse(options_.extra));
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::uint64_t Workload::input_tokens(std::size_t conversation, std::size_t turn) const {
  const std::vector<Turn>& turns = plan_.conversations[conversation].turns;
  std::uint64_t sum = turns[turn].input_tokens;
  for (std::size_t i = 0; i < turn; ++i) sum += turns[i].input_tokens + turns[i].output_tokens;
  return sum;
}

}  // namespace kvasir::load
