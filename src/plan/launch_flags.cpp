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

// Bytes of the cache on one device: what the flags of an engine count.
std::uint64_t cache_of_a_device(const Launch& launch) {
  return (launch.parallel == nullptr ? launch.plan : launch.parallel->ranks[launch.parallel->worst].plan).cache_bytes;
}

// What flags that count sequences mean: those of a replica.
std::uint64_t requests_of(const Launch& launch) { return launch.parallel == nullptr ? launch.input.requests : launch.parallel->requests; }
std::uint64_t sequences_of(const Launch& launch) { return requests_of(launch) * launch.input.branches.per_request; }

// Tokens that all sequences hold in whole blocks, of the group that keeps most.
std::uint64_t held_tokens(const Launch& launch) {
  const PlanInput& input = launch.input;
  const std::uint64_t block = input.kv.block_tokens, rows = input.length + input.branches.speculative_tokens;
  if (!input.held) return (rows + block - 1) / block * block * sequences_of(launch);
  const auto most = std::ranges::max_element(input.held->blocks);
  return most == input.held->blocks.end() ? 0 : *most * block;
}

// Engines that read a Hugging Face repository are given one; the others a GGUF.
void note_the_model(const Launch& launch, bool reads_repositories, LaunchCommand& out) {
  const bool is_gguf = launch.model.ends_with(".gguf");
  if (reads_repositories && launch.is_name) add_note(out, "the name is this planner's own: give the model's repository or folder");
  if (!reads_repositories && !is_gguf) add_note(out, "serves GGUF files: give the model as one");
  if (launch.is_changed) add_note(out, "fields of the model were set by hand for the plan: the command serves it as it is");
}

// What no engine's flags below say.
void note_the_rest(const Launch& launch, bool skips, LaunchCommand& out) {
  const PlanInput& input = launch.input;
  if (!skips && (!input.kv.skip_layers.empty() || input.kv.skip_windows)) add_note(out, "every layer has the same type here, planned are layers kept at f16");
  if (input.branches.speculative_tokens > 0) add_note(out, fmt::format("drafts of {} tokens are planned: a draft's model or method is yours to name", input.branches.speculative_tokens));
  if (input.branches.per_request > 1) add_note(out, fmt::format("{} branches a request are planned: requests ask for them (n)", input.branches.per_request));
}

LaunchCommand kvasir_command(const Launch& launch) {
  const PlanInput& input = launch.input;
  LaunchCommand out{"kvasir", "", {}};
  const format::KvFormat& format = input.kv.format;
  std::string type;
  if (format.k == format.v && format::is_offered(format.k)) type = fmt::format(" --kv-cache-dtype {}", format::to_string(format.k));
  else add_note(out, fmt::format("a cache in {} is planned only, not served yet", names_of(format)));
  note_the_model(launch, false, out);
  if (launch.parallel != nullptr) add_note(out, "serves on one device: several are planned only");
  note_the_rest(launch, false, out);
  out.command = fmt::format("kvasir serve {} --max-num-seqs {} --max-model-len {} --block-size {} --max-num-batched-tokens {} --threads {} --kv-cache-memory {}{}", quoted(launch.model),
                            input.requests * input.branches.per_request, input.length, input.kv.block_tokens, input.batched_tokens, input.threads, launch.plan.cache_bytes, type);
  return out;
}

// sizes: the engine's names of tensor, pipeline and data parallel size.
std::string layout_flags(const Launch& launch, const std::array<std::string_view, 3>& sizes) {
  if (launch.parallel == nullptr) return "";
  const ParallelLayout& layout = launch.parallel->layout;
  const std::array<std::uint32_t, 3> counts = {layout.tensor, layout.pipeline, layout.data};
  std::string out;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (counts[i] > 1) out += fmt::format(" {} {}", sizes[i], counts[i]);
  }
  return out;
}

std::string vllm_skips(const KvChoice& kv) {
  std::string layers;
  for (const std::uint32_t layer : kv.skip_layers) layers += fmt::format(" {}", layer);
  if (kv.skip_windows) layers += " sliding_window";
  return layers.empty() ? "" : " --kv-cache-dtype-skip-layers" + layers;
}

LaunchCommand vllm_command(const Launch& launch) {
  const PlanInput& input = launch.input;
  LaunchCommand out{"vllm", "", {}};
  constexpr std::array kBlocks = {16u, 32u, 64u, 128u};
  std::string block;
  note_the_model(launch, true, out);
  if (std::ranges::find(kBlocks, input.kv.block_tokens) != kBlocks.end()) block = fmt::format(" --block-size {}", input.kv.block_tokens);
  else add_note(out, fmt::format("blocks of {} tokens are not offered", input.kv.block_tokens));
  const std::string type = type_flag(out, input.kv.format, vllm_name);
  std::string layout = layout_flags(launch, {"--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"});
  if (launch.parallel != nullptr && launch.parallel->layout.expert) layout += " --enable-expert-parallel";
  note_the_rest(launch, true, out);
  out.command = fmt::format("vllm serve {} --max-num-seqs {} --max-model-len {}{} --max-num-batched-tokens {} --kv-cache-memory-bytes {}{}{}{}", quoted(launch.model), sequences_of(launch),
                            input.length, block, std::max<std::uint64_t>(input.batched_tokens, sequences_of(launch)), cache_of_a_device(launch), type, vllm_skips(input.kv), layout);
  return out;
}

LaunchCommand sglang_command(const Launch& launch) {
  const PlanInput& input = launch.input;
  LaunchCommand out{"sglang", "", {}};
  note_the_model(launch, true, out);
  const std::string type = type_flag(out, input.kv.format, sglang_name);
  std::string layout = layout_flags(launch, {"--tp-size", "--pp-size", "--dp-size"});
  if (launch.parallel != nullptr && launch.parallel->layout.expert) layout += fmt::format(" --ep-size {}", launch.parallel->layout.tensor);
  note_the_rest(launch, false, out);
  out.command = fmt::format("python -m sglang.launch_server --model-path {} --max-running-requests {} --context-length {} --page-size {} --chunked-prefill-size {} --max-total-tokens {}{}{}",
                            quoted(launch.model), sequences_of(launch), input.length, input.kv.block_tokens, input.batched_tokens, held_tokens(launch), type, layout);
  return out;
}

LaunchCommand llama_command(const Launch& launch) {
  const PlanInput& input = launch.input;
  LaunchCommand out{"llama.cpp", "", {}};
  const TheirName k = llama_name(input.kv.format.k), v = llama_name(input.kv.format.v);
  add_note(out, std::string(k.note));
  add_note(out, std::string(v.note));
  note_the_model(launch, false, out);
  if (launch.parallel != nullptr) add_note(out, "layers are dealt over the devices (-sm layer): other layouts are planned for other engines");
  add_note(out, "each slot reserves its whole length at the start");
  if (std::ranges::any_of(launch.plan.kv.groups, [](const PlannedGroup& g) { return g.group.window != 0; })) {
    add_note(out, "--swa-full would keep all history in windowed layers: leave it off");
  }
  note_the_rest(launch, false, out);
  out.command = fmt::format("llama-server -m {} -np {} -c {} -ub {} -ctk {} -ctv {} -fa on", quoted(launch.model), input.requests * input.branches.per_request, input.length * input.requests * input.branches.per_request, input.batched_tokens,
                            k.name, v.name);
  return out;
}

}  // namespace

std::vector<LaunchCommand> launch_commands(const Launch& launch) {
  return {kvasir_command(launch), vllm_command(launch), sglang_command(launch), llama_command(launch)};
}

}  // namespace kvasir::plan
