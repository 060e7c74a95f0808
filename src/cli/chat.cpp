#include "cli/chat.hpp"

#include <csignal>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "cli/exit_code.hpp"
#include "cli/generation.hpp"

namespace kvasir::cli {
namespace {

constexpr const char* kGreeting =
    "Type a message and press Enter. /clear forgets the conversation, /quit or Ctrl-D ends it, Ctrl-C ends an answer.\n";

std::vector<text::ChatMessage> first_messages(const RunFlags& flags) {
  if (flags.system.empty()) return {};
  return {{"system", flags.system}};
}

// The answer to the last message, shown as it comes.
Result<Answer> answer_to(const std::vector<text::ChatMessage>& messages, const RunFlags& flags, const LoadedModel& loaded,
                         engine::Engine& engine, const platform::InterruptScope& interrupt, Console& console) {
  KV_ASSIGN(std::vector<TokenId> prompt, loaded.chat_template->encode_chat(*loaded.tokenizer, messages, true));
  engine::GenerateRequest request = flags.request(std::move(prompt), engine.effective().max_model_len);
  return generate(
      engine, std::move(request), [&](std::string_view text) { console.out << text << std::flush; }, interrupt);
}

}  // namespace

int chat(const RunFlags& flags, const LoadedModel& loaded, engine::Engine& engine, platform::InterruptScope& interrupt,
         Console& console) {
  std::vector<text::ChatMessage> messages = first_messages(flags);
  console.err << kGreeting;
  std::string line;
  while (true) {
    console.err << "\n> " << std::flush;
    if (!interrupt.wait_for_input() || !std::getline(console.in, line)) break;
    if (line == "/quit" || line == "/exit") return kExitOk;
    if (line == "/clear") {
      messages = first_messages(flags);
      continue;
    }
    if (line.empty()) continue;
    messages.push_back({"user", line});
    Result<Answer> answer = answer_to(messages, flags, loaded, engine, interrupt, console);
    if (!answer.ok()) {   // a conversation that outgrew the context, say: the message is taken back, nothing else changes
      report_error(console, answer.error());
      messages.pop_back();
      continue;
    }
    if (interrupt.pending() == SIGTERM) break;
    interrupt.clear();
    console.out << '\n' << std::flush;
    console.err << "[" << summary_line(*answer) << "]\n";
    messages.push_back({"assistant", std::move(answer->text)});
  }
  console.err << '\n';
  return interrupt.pending() != 0 ? kExitSignal + interrupt.pending() : kExitOk;
}

}  // namespace kvasir::cli
