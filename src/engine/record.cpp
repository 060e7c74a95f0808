#include "engine/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "format/block_count.hpp"
#include "model/arithmetic.hpp"

namespace kvasir::engine {
namespace {

void add_positions(const artifact::Rope& rope, artifact::IdParts& parts) {
  parts.add("position.encoding", rope.pairing == artifact::RopePairing::none ? "none" : "rope");
  parts.add("position.rope.pairing", artifact::to_string(rope.pairing));
  parts.add("position.rope.dim", std::uint64_t{rope.dim}).add("position.rope.base", rope.base);
  parts.add("position.rope.scaling", artifact::to_string(rope.scaling)).add("position.rope.factor", rope.factor);
  parts.add("position.rope.original_context", std::uint64_t{rope.original_context});
}

// What shares one scale.
std::string_view scale_granularity(format::KvType type) {
  if (format::row_scale_bytes(type) > 0) return "row and KV head";
  return format::is_offered(type) ? "none" : "tensor";
}

void add_format(std::string_view side, format::KvType type, artifact::IdParts& parts) {
  parts.add(fmt::format("kv.{}.type", side), format::to_string(type));
  parts.add(fmt::format("kv.{}.scale", side), scale_granularity(type));
  parts.add(fmt::format("kv.{}.commit_group", side), std::uint64_t{format::commit_group(type)});
}

// "0-29", "0,2,4": ascending numbers, runs of three and more as ranges.
std::string ranges(const std::vector<std::uint32_t>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last < i + 2) last = i;
    out += fmt::format("{}{}", out.empty() ? "" : ",", numbers[i]);
    if (last > i) out += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return out;
}

// What so many sequences of the longest length hold of a group, and one of them besides while a step adds to its prompt.
struct GroupNeed {
  std::uint64_t each = 0, step = 0;
};

GroupNeed need_of(const store::GroupPlan& group, const PoolConfig& config) {
  const auto held = [&](std::uint64_t step) {
    return format::blocks_held(config.max_model_len, group.reach, step, group.layout.block_tokens());
  };
  return {held(1), held(config.max_batched_tokens) - held(1)};
}

// Most sequences of the longest length that the superpages hold, of those that may run.
std::uint64_t sequences_held(const EngineFootprint& engine, const std::vector<GroupNeed>& needs) {
  for (std::uint64_t n = engine.config.max_sequences; n > 0; --n) {
    std::uint64_t superpages = 0;
    for (std::size_t g = 0; g < needs.size(); ++g)
      superpages += ceil_div(n * needs[g].each + needs[g].step, engine.store.groups[g].blocks_per_superpage);
    if (superpages <= engine.store.superpages) return n;
  }
  return 0;
}

std::string_view kind_of(format::Reach reach) {
  if (reach.window == 0) return "kv.full";
  return reach.chunked ? "kv.chunk" : "kv.window";
}

// One group has all of the cache. Several share it: told is what the longest sequences would hold, as a plan for them does.
void add_cache_lines(const EngineFootprint& engine, std::vector<artifact::CapacityLine>& lines) {
  const store::StorePlan& store = engine.store;
  std::vector<GroupNeed> needs;
  for (const store::GroupPlan& group : store.groups) needs.push_back(need_of(group, engine.config));
  const bool alone = store.groups.size() == 1;
  const std::uint64_t sequences = alone ? 0 : sequences_held(engine, needs);
  std::uint64_t told = 0, step = 0;
  for (std::size_t g = 0; g < needs.size(); ++g) {
    const std::uint64_t block = store.groups[g].layout.block_bytes();
    const std::uint64_t beside = sequences > 0 || alone ? needs[g].step : 0;
    const std::uint64_t blocks = alone ? store.groups[g].blocks - std::min<std::uint64_t>(store.groups[g].blocks, beside)
                                       : sequences * needs[g].each;
    lines.push_back({std::string(kind_of(store.groups[g].reach)), blocks * block});
    step += beside * block;
    told += (blocks + beside) * block;
  }
  if (step > 0) lines.push_back({"kv.step", step});
  lines.push_back({"kv.slack", store.capacity_bytes - told});
}

}  // namespace

artifact::RecordedId numeric_id(const std::optional<ModelHashes>& hashes, const std::optional<artifact::Rope>& rope,
                                format::KvFormat format, std::optional<model::Compute> compute, std::string_view why) {
  artifact::RecordedId out;
  if (hashes) {
    out.parts.add("weights.sha256", hashes->weights).add("tokenizer.sha256", hashes->tokenizer);
  } else {
    for (const char* part : {"weights.sha256", "tokenizer.sha256"}) out.undetermined.emplace(part, why);
  }
  if (rope) {
    add_positions(*rope, out.parts);
  } else {
    out.undetermined.emplace("position", why);
  }
  add_format("k", format.k, out.parts);
  add_format("v", format.v, out.parts);
  if (compute) {
    model::add_arithmetic(*compute, out.parts);
  } else {
    out.undetermined.emplace("arithmetic", why);
  }
  return out;
}

Result<artifact::RecordedId> layout_id(const format::KvGeometry& kv) {
  artifact::RecordedId out;
  artifact::IdParts& parts = out.parts;
  parts.add("k.tile", fmt::format("{} keys of one channel", format::kKeysPerTile)).add("v.tile", "rows");
  parts.add("groups", std::uint64_t{kv.groups.size()});
  for (std::size_t g = 0; g < kv.groups.size(); ++g) {
    const format::CacheGroup& group = kv.groups[g];
    KV_ASSIGN(const format::BlockLayout layout, format::BlockLayout::create(group));
    const auto add = [&parts, g](std::string_view key, auto value) { parts.add(fmt::format("group.{}.{}", g, key), value); };
    add("layers", std::string_view(ranges(group.layers)));
    add("kv_heads", std::uint64_t{group.kv_heads});
    add("k_dim", std::uint64_t{group.head_dim});
    add("v_dim", std::uint64_t{group.v_dim.value_or(group.head_dim)});
    add("window", std::uint64_t{group.window});
    add("block_tokens", std::uint64_t{layout.block_tokens()});
    add("block_bytes", std::uint64_t{layout.block_bytes()});
    add("head_bytes", std::uint64_t{layout.head_bytes()});
    add("k_tile_bytes", std::uint64_t{layout.k_tile_bytes()});
    add("v_start", std::uint64_t{layout.v_start()});
  }
  for (const char* kind : {"tensor", "pipeline", "data"}) parts.add(fmt::format("parallel.{}", kind), std::uint64_t{1});
  return out;
}

std::vector<artifact::CapacityLine> capacity_lines(const EngineFootprint& engine, const model::WeightFootprint& weights) {
  std::vector<artifact::CapacityLine> lines{{"weights.embedding", weights.embedding}, {"weights.head", weights.head},
                                            {"weights.attention", weights.attention}, {"weights.feed_forward", weights.feed_forward},
                                            {"weights.norms", weights.norms}};
  std::erase_if(lines, [](const artifact::CapacityLine& line) { return line.bytes == 0; });   // as a plan: a tied head
  add_cache_lines(engine, lines);
  lines.push_back({"activations", engine.activations});
  lines.push_back({"logits", engine.logits});
  lines.push_back({"sampler", engine.sampler});
  lines.push_back({"metadata", engine.metadata()});
  return lines;
}

}  // namespace kvasir::engine
