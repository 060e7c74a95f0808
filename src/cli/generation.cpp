#include "cli/generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/units.hpp"
#include "report/numbers.hpp"

namespace kvasir::cli {
namespace {

void append(Answer& answer, const engine::TokenOutput& output) {
  if (output.token >= 0) answer.token_ids.push_back(output.token);
  answer.text += output.text;
  if (output.has_logprob) {
    answer.logprobs.push_back({{output.token, output.logprob}, {output.top_logprobs.begin(), output.top_logprobs.end()}});
  }
  if (output.finish != engine::FinishReason::none) answer.finish_reason = engine::to_string(output.finish);
}

}  // namespace

double Answer::decode_per_s() const {
  return token_ids.size() > 1 && decode_s > 0 ? static_cast<double>(token_ids.size() - 1) / decode_s : 0;
}

double Answer::prefill_per_s() const { return ttft_s > 0 ? prompt_tokens / ttft_s : 0; }

Result<Answer> generate(engine::Engine& engine, engine::GenerateRequest request,
                        const std::function<void(std::string_view text)>& on_text, const platform::InterruptScope& interrupt) {
  Answer answer;
  answer.prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  KV_ASSIGN(const RequestId id, engine.submit(std::move(request)));
  std::vector<engine::TokenOutput> outputs;
  while (engine.has_work()) {
    if (interrupt.pending() != 0) {
      engine.cancel(id);
      answer.finish_reason = "cancelled";
      break;
    }
    engine.step(outputs);
    for (const engine::TokenOutput& output : outputs) {
      if (output.finish == engine::FinishReason::error) return Error{ErrorCode::exhausted, std::string(output.error)};
      if (answer.token_ids.empty() && output.token >= 0) answer.ttft_s = elapsed();
      append(answer, output);
      if (!output.text.empty()) on_text(output.text);
    }
    answer.kv_bytes = std::max(answer.kv_bytes, engine.accounting().active_bytes);
  }
  answer.total_s = elapsed();
  if (!answer.token_ids.empty()) answer.decode_s = answer.total_s - answer.ttft_s;
  return answer;
}

std::string summary_line(const Answer& answer) {
  if (answer.token_ids.empty()) return fmt::format("no tokens ({}) after {}", answer.finish_reason, report::format_seconds(answer.total_s));
  return fmt::format("{} tokens ({}), first after {}, {} tok/s, {} of KV", answer.token_ids.size(), answer.finish_reason,
                     report::format_seconds(answer.ttft_s), report::format_rate(answer.decode_per_s()), format_bytes(answer.kv_bytes));
}

}  // namespace kvasir::cli
