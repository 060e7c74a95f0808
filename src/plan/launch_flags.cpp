#include "plan/launch_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kvasir::plan {
namespace {

using format::KvType;

constexpr std::string_view kQuoted = " \t\n\"'`$&|;<>()*?[]#~!{}\\";

// For a shell: as it is where nothing needs quotes.
std::string quoted(const std::string& text) {
  if (!text.empty() && text.find_first_of(kQuoted) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string names_of(const format::KvFormat& format) {
  return format.k == format.v ? std::string(format::to_string(format.k))
                              : fmt::format("{}/{}", format::to_string(format.k), format::to_string(format.v));
}

// What another engine calls a format, "" for none of the kind; and what it adds or lacks.
struct TheirName {
  std::string_view name, note;
};

TheirName vllm_name(KvType type) {
  switch (type) {
    case KvType::f32: return {"", "no cache in f32"};
    case KvType::f16: return {"float16", ""};
    case KvType::bf16: return {"bfloat16", ""};
    case KvType::fp8_e4m3: return {"fp8_e4m3", "without calibrated scales in the checkpoint every scale is 1.0"};
    case KvType::fp8_e5m2: return {"fp8_e5m2", ""};
    case KvType::int8: return {"int8_per_token_head", "one scale a token and head, as planned"};
    case KvType::int4: return {"int4_per_token_head", "one scale a token and head, as planned"};
  }
  return {};
}

TheirName sglang_name(KvType type) {
  switch (type) {
    case KvType::f32: return {"", "no cache in f32"};
    case KvType::f16: return {"auto", "auto is the model's own type: add --dtype float16"};
    case KvType::bf16: return {"bf16", ""};
    case KvType::fp8_e4m3: return {"fp8_e4m3", "without calibrated scales (--quantization-param-path) every scale is 1.0"};
    case KvType::fp8_e5m2: return {"fp8_e5m2", ""};
    case KvType::int8: return {"", "no cache in int8"};
    case KvType::int4: return {"", "no cache in int4"};
  }
  return {};
}

TheirName llama_name(KvType type) {
  switch (type) {
    case KvType::f32: return {"f32", ""};
    case KvType::f16: return {"f16", ""};
    case KvType::bf16: return {"bf16", ""};
    case KvType::fp8_e4m3:
    case KvType::fp8_e5m2: return {"q8_0", "no 8-bit floats: q8_0 takes 8.5 bits an element"};
    case KvType::int8: return {"q8_0", "q8_0 has an f16 scale for each 32 elements: 8.5 bits an element"};
    case KvType::int4: return {"q4_0", "q4_0 has an f16 scale for each 32 elements: 4.5 bits an element"};
  }
  return {};
}

void add_note(LaunchCommand& command, std::string note) {
  if (!note.empty() && std::ranges::find(command.notes, note) == command.notes.end()) command.notes.push_back(std::move(note));
}

// One name for K and V alike.
std::string type_flag(LaunchCommand& command, const format::KvFormat& format, TheirName (*name)(KvType)) {
  const TheirName k = name(format.k);
  if (format.k != format.v) add_note(command, fmt::format("K and V share one type here, planned are {}", names_of(format)));
  add_note(command, std::string(k.note));
  return k.name.empty() ? "" : fmt::format(" --kv-cache-dtype {}", k.name);
}

LaunchCommand kvasir_command(const std::string& model, const PlanInput& input, const CapacityPlan& plan) {
  LaunchCommand out{"kvasir", "", {}};
  const format::KvFormat& format = input.kv.format;
  std::string type;
  if (format.k == format.v && format::is_offered(format.k)) type = fmt::format(" --kv-cache-dtype {}", format::to_string(format.k));
  else add_note(out, fmt::format("a cache in {} is planned only, not served yet", names_of(format)));
  if (!model.ends_with(".gguf")) add_note(out, "serves GGUF files: give the model as one");
  out.command = fmt::format("kvasir serve {} --max-num-seqs {} --max-model-len {} --block-size {} --max-num-batched-tokens {} --kv-cache-memory {}{}", quoted(model),
                            input.requests, input.length, input.kv.block_tokens, input.batched_tokens, plan.kv_bytes, type);
  return out;
}

LaunchCommand vllm_command(const std::string& model, const PlanInput& input, const CapacityPlan& plan) {
  LaunchCommand out{"vllm", "", {}};
  constexpr std::array kBlocks = {16u, 32u, 64u, 128u};
  std::string block;
  if (std::ranges::find(kBlocks, input.kv.block_tokens) != kBlocks.end()) block = fmt::format(" --block-size {}", input.kv.block_tokens);
  else add_note(out, fmt::format("blocks of {} tokens are not offered", input.kv.block_tokens));
  const std::string type = type_flag(out, input.kv.format, vllm_name);
  out.command = fmt::format("vllm serve {} --max-num-seqs {} --max-model-len {}{} --max-num-batched-tokens {} --kv-cache-memory-bytes {}{}", quoted(model), input.requests,
                            input.length, block, std::max<std::uint64_t>(input.batched_tokens, input.requests), plan.kv_bytes + plan.state_bytes, type);
  return out;
}

LaunchCommand sglang_command(const std::string& model, const PlanInput& input, const CapacityPlan&) {
  LaunchCommand out{"sglang", "", {}};
  const std::string type = type_flag(out, input.kv.format, sglang_name);
  std::uint64_t blocks = (input.length + input.kv.block_tokens - 1) / input.kv.block_tokens;
  out.command = fmt::format("python -m sglang.launch_server --model-path {} --max-running-requests {} --context-length {} --page-size {} --chunked-prefill-size {} --max-total-tokens {}{}",
                            quoted(model), input.requests, input.length, input.kv.block_tokens, input.batched_tokens, blocks * input.kv.block_tokens * input.requests, type);
  return out;
}

LaunchCommand llama_command(const std::string& model, const PlanInput& input, const CapacityPlan& plan) {
  LaunchCommand out{"llama.cpp", "", {}};
  const TheirName k = llama_name(input.kv.format.k), v = llama_name(input.kv.format.v);
  add_note(out, std::string(k.note));
  add_note(out, std::string(v.note));
  if (!model.ends_with(".gguf")) add_note(out, "serves GGUF files: give the model as one");
  add_note(out, "each slot reserves its whole length at the start");
  if (std::ranges::any_of(plan.kv.groups, [](const PlannedGroup& g) { return g.group.window != 0; })) {
    add_note(out, "--swa-full would keep all history in windowed layers: leave it off");
  }
  out.command = fmt::format("llama-server -m {} -np {} -c {} -ub {} -ctk {} -ctv {} -fa on", quoted(model), input.requests, input.length * input.requests, input.batched_tokens,
                            k.name, v.name);
  return out;
}

}  // namespace

std::vector<LaunchCommand> launch_commands(const std::string& model, const PlanInput& input, const CapacityPlan& plan) {
  return {kvasir_command(model, input, plan), vllm_command(model, input, plan), sglang_command(model, input, plan), llama_command(model, input, plan)};
}

}  // namespace kvasir::plan
