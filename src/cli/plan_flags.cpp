#include "cli/plan_flags.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "artifact/shape_override.hpp"
#include "cli/option_values.hpp"
#include "plan/capacity_plan.hpp"

namespace kvasir::cli {
Result<format::KvFormat> parse_kv_format(const std::string& text) {
  if (const auto format = format::parse_kv_format(text)) return *format;
  return Error{ErrorCode::usage, fmt::format("--kv-cache-dtype: '{}' is not a type or K/V; valid: {}, or two of them as int8/f16", text, format::kv_type_names())};
}

void add_plan_flags(CLI::App& app, PlanFlags& flags) {
  app.add_option("MODEL,-m,--model", flags.model, "A GGUF file, a config.json or its folder, or the name of a known model (llama-3-8b)")
      ->type_name("MODEL")->required();
  app.add_option("--requests", flags.requests, "Sequences held at once (default 1)")->check(whole_number(1, plan::kMaxRequests))->type_name("N");
  app.add_option("--length", flags.length, "Tokens of each, prompt and answer (default: the model's context)")
      ->check(whole_number(1, plan::kMaxLength))->type_name("N");
  app.add_option("--kv-cache-dtype", flags.kv_cache_dtype, "How K and V are stored: " + format::kv_type_names() + "; K and V apart as int8/f16 (default f16)")
      ->check(not_empty())->type_name("TYPE");
  app.add_option("--memory", flags.memory, "Memory to fit into, as 16GiB: how many sequences, how long, and exit code 3 if it does not fit")
      ->transform(byte_size())->type_name("SIZE");
  app.add_option("--block-size", flags.block_size, "Tokens of one cache block: 16, 32, 64, 128 or 256 (default 32)")
      ->check(one_of({"16", "32", "64", "128", "256"}))->type_name("N");
  app.add_option("--max-num-batched-tokens", flags.max_num_batched_tokens, "Tokens of one step, prompts and answers together (default 512)")
      ->check(whole_number(1, plan::kMaxRequests))->type_name("N");
  app.add_option("--threads", flags.threads, "Threads of the engine (default: this machine's processors)")->check(whole_number(1, 1024))->type_name("N");
  app.add_option("--set", flags.set, fmt::format("Another value for a field of the model, as kv_heads=8; may be given several times, and applies in that order. Fields: {}; of a config.json also family, the model_type as which it is read",
                                                    fmt::join(artifact::override_keys(), ", ")))->type_name("KEY=VALUE");
  add_mix_flags(app, flags.mix);
  app.add_flag("--json", flags.json, "One JSON object");
  app.add_option("--what-if", flags.what_if, "What other choices would take: axes joined by commas for every combination (formats, heads, blocks, windows), or each for one change at a time")
      ->type_name("AXES")->check(not_empty());
  app.add_flag("--launch", flags.launch, "Command lines that serve this plan: kvasir, vLLM, SGLang, llama.cpp");
  app.add_option("--html", flags.html, "Write a page with pictures, one self-contained file")->type_name("FILE")->check(not_empty());
  add_plan_device_flags(app, flags.on);
  add_plan_record_flags(app, flags.record);
}

}  // namespace kvasir::cli
