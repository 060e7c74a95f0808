// kvasir run: one answer to a prompt, or a chat on a terminal.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <istream>
#include <iterator>
#include <memory>
#include <ostream>

#include "artifact/record_json.hpp"
#include "cli/artifact_record.hpp"
#include "cli/chat.hpp"
#include "cli/command.hpp"
#include "cli/effective.hpp"
#include "cli/exit_code.hpp"
#include "cli/generation.hpp"
#include "cli/loading.hpp"
#include "cli/run_flags.hpp"
#include "report/json.hpp"

namespace kvasir::cli {
namespace {

using report::Json;

Json logprobs_json(const Answer& answer, bool asked) {
  if (!asked) return nullptr;
  Json list = Json::array();
  for (const AnswerLogprob& entry : answer.logprobs) {
    Json top = Json::array();
    for (const engine::TokenLogprob& other : entry.top) top.push_back({{"token_id", other.token}, {"logprob", other.logprob}});
    list.push_back({{"token_id", entry.token.token}, {"logprob", entry.token.logprob}, {"top", std::move(top)}});
  }
  return list;
}

Json answer_json(const Answer& answer, const RunFlags& flags, const LoadedModel& loaded, const engine::Engine& engine) {
  Json json;
  json["text"] = answer.text;
  json["token_ids"] = answer.token_ids;
  json["logprobs"] = logprobs_json(answer, flags.sampling.logprobs >= 0);
  json["finish_reason"] = answer.finish_reason;
  json["usage"] = {{"prompt_tokens", answer.prompt_tokens},
                   {"completion_tokens", answer.token_ids.size()},
                   {"total_tokens", answer.prompt_tokens + answer.token_ids.size()}};
  json["timings"] = {{"load_s", loaded.load_s},        {"ttft_s", answer.ttft_s},
                     {"decode_s", answer.decode_s},    {"total_s", answer.total_s},
                     {"prefill_tok_s", answer.prefill_per_s()}, {"decode_tok_s", answer.decode_per_s()}};
  const ProcessMemory process = process_memory(loaded);
  json["memory"] = memory_json(engine.memory(), process.runtime, process.resident);
  json["memory"]["kv_bytes"] = answer.kv_bytes;
  json["effective"] = effective_json(engine.effective());
  return json;
}

// The prompt as ids: through the chat template, or as it is. Errors: bad_input for an empty prompt and for invalid UTF-8;
// unsupported for a model without a chat template, unless --no-chat-template.
Result<std::vector<TokenId>> encode_prompt(const std::string& prompt, const RunFlags& flags, const LoadedModel& loaded) {
  if (prompt.empty()) return Error{ErrorCode::bad_input, "the prompt is empty; give some text with --prompt or on stdin"};
  if (flags.no_chat_template) return loaded.tokenizer->encode(prompt);
  std::vector<text::ChatMessage> messages;
  if (!flags.system.empty()) messages.push_back({"system", flags.system});
  messages.push_back({"user", prompt});
  return loaded.chat_template->encode_chat(*loaded.tokenizer, messages, true);
}

constexpr std::size_t kMaxPromptBytes = 16 << 20;

// All of stdin, less one newline at the end, which `echo` and editors add.
Result<std::string> read_prompt(std::istream& in) {
  KV_ASSIGN(std::string text, read_all(in, "the prompt on stdin", kMaxPromptBytes));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

int answer_once(const RunFlags& flags, const LoadedModel& loaded, engine::Engine& engine, const platform::InterruptScope& interrupt,
                Console& console) {
  const Result<std::string> prompt = flags.prompt ? *flags.prompt : read_prompt(console.in);
  if (interrupt.pending() != 0) return kExitSignal + interrupt.pending();
  if (!prompt.ok()) return report_error(console, prompt.error());
  Result<std::vector<TokenId>> ids = encode_prompt(*prompt, flags, loaded);
  if (!ids.ok()) return report_error(console, ids.error());
  const auto show = [&](std::string_view text) {
    if (!flags.json) console.out << text << std::flush;
  };
  Result<Answer> answer = generate(engine, flags.request(std::move(*ids), engine.effective().max_model_len), show, interrupt);
  if (!answer.ok()) return report_error(console, answer.error());
  if (flags.json) {
    console.out << report::to_json_line(answer_json(*answer, flags, loaded, engine)) << '\n' << std::flush;
  } else {
    console.out << '\n' << std::flush;
    console.err << "[" << summary_line(*answer) << "]\n";
  }
  return interrupt.pending() != 0 ? kExitSignal + interrupt.pending() : kExitOk;
}

// Before the first token, and lets go of the file.
Status record_launch(const RunFlags& flags, LoadedModel& loaded, const engine::PoolConfig& config,
                     const platform::InterruptScope& interrupt, Console& console) {
  const HashProgress show = show_hashing(console, loaded.file->file_bytes());
  const HashProgress go_on = [&](std::uint64_t done) { return show(done) && interrupt.pending() == 0; };
  KV_ASSIGN(const artifact::ArtifactRecord record, launched_record(*loaded.file, *loaded.model, config, go_on));
  loaded.file.reset();
  KV_ASSIGN(const std::string text, artifact::record_text(record));
  return write_record(flags.launch.record, text);
}

int run(const RunFlags& flags, Console& console) {
  platform::InterruptScope interrupt;
  const bool recorded = !flags.launch.record.empty();
  Result<LoadedModel> loaded = load_model(flags.model, flags.engine, recorded ? AfterLoad::keep_file : AfterLoad::close_file);
  if (!loaded.ok()) return report_error(console, loaded.error());
  if (!flags.no_chat_template && !loaded->chat_template) {
    return report_error(console, {ErrorCode::unsupported, fmt::format("'{}' has no chat template; continue a text with --no-chat-template", flags.model)});
  }
  const bool chatting = !flags.prompt && !flags.json && console.in_is_terminal;
  if (chatting && flags.no_chat_template) {
    return report_error(console, {ErrorCode::usage, "a chat needs the chat template; with --no-chat-template give --prompt or stdin"});
  }
  engine::PoolConfig config = flags.engine.pool_config();
  if (!flags.engine.max_num_seqs) config.max_sequences = flags.beam.width;   // there is never a second answer
  Result<std::unique_ptr<engine::Engine>> engine = engine::Engine::create(loaded->model, loaded->tokenizer, config);
  if (!engine.ok()) return report_error(console, engine.error());
  if (recorded) {
    if (const Status written = record_launch(flags, *loaded, config, interrupt, console); !written.ok()) {
      return interrupt.pending() != 0 ? kExitSignal + interrupt.pending() : report_error(console, written.error());
    }
  }
  if (flags.verbose || (chatting && console.err_is_terminal)) {
    const ProcessMemory process = process_memory(*loaded);
    console.err << memory_table((*engine)->memory(), process.runtime, process.resident) << '\n';
  }
  if (interrupt.pending() != 0) return kExitSignal + interrupt.pending();
  return chatting ? chat(flags, *loaded, **engine, interrupt, console) : answer_once(flags, *loaded, **engine, interrupt, console);
}

}  // namespace

Command add_run(CLI::App& root) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* app = root.add_subcommand("run", "Answer a prompt, or chat on a terminal");
  add_run_flags(*app, *flags);
  return {app, &flags->model, [flags](Console& console) { return run(*flags, console); }};
}

}  // namespace kvasir::cli
