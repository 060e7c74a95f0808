#include <fmt/format.h>

#include "server/api/request_parts.hpp"

namespace kvasir::server::api {
namespace {

// The four shapes; which one it is was checked.
void read_prompts(const Json& prompt, CompletionRequest& out) {
  if (prompt.is_string()) {
    out.prompts.emplace_back(prompt.get<std::string>());
  } else if (prompt[0].is_number()) {
    out.prompts.emplace_back(read_tokens(prompt));
  } else {
    out.prompts.reserve(prompt.size());
    for (const Json& one : prompt) {
      if (one.is_string())
        out.prompts.emplace_back(one.get<std::string>());
      else
        out.prompts.emplace_back(read_tokens(one));
    }
  }
}

}  // namespace

ApiResult<CompletionRequest> parse_completion(const Json& body, const ModelFacts& facts) {
  CompletionRequest out;
  KV_ASSIGN(out.warnings, check_body(body, Route::completions, facts));
  const Json* prompt = member(body, "prompt");
  if (prompt == nullptr) return missing_field("prompt", to_string(FieldType::prompt));
  KV_ASSIGN(out.options, read_options(body, facts));
  read_prompts(*prompt, out);
  out.echo = flag_of(body, "echo", false);
  out.add_special = flag_of(body, "add_special_tokens", true);
  out.parse_special = flag_of(body, "parse_special", true);
  if (const Json* logprobs = member(body, "logprobs")) {
    out.options.logprobs = static_cast<std::int32_t>(integer_of(*logprobs));
  }
  if (out.options.max_tokens == 0u && !out.echo && out.options.prompt_logprobs < 0) {
    return invalid_value("max_tokens", "0", "at least 1 (0 only with echo or prompt_logprobs)");
  }
  // What an echoed prompt shows is computed like prompt_logprobs.
  if (out.echo && out.options.logprobs > out.options.prompt_logprobs) {
    out.options.prompt_logprobs = out.options.logprobs;
  }
  KV_TRY(read_search(body, Route::completions, out.options));
  if (const std::size_t each = out.options.sequences(); out.prompts.size() * each > kMaxSequences) {
    const std::string_view field = each == out.options.n ? "n" : "best_of";
    return bad_request("invalid_value", field,
                       fmt::format("{} is {} with {} prompts: {} answers; valid: at most {} in one request", field, each,
                                   out.prompts.size(), out.prompts.size() * each, kMaxSequences));
  }
  return out;
}

}  // namespace kvasir::server::api
