#include "plan/capacity_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "engine/footprint.hpp"
#include "plan/search.hpp"
#include "report/numbers.hpp"
#include "store/footprint.hpp"

namespace kvasir::plan {
namespace {

constexpr std::uint32_t kAssumedWidening = 4;   // of a feed-forward block whose width nobody told

Status in_range(std::string_view key, std::uint64_t value, std::uint64_t most) {
  if (value >= 1 && value <= most) return ok_status();
  return Error{ErrorCode::bad_input, fmt::format("{} is {}, valid: 1 to {}", key, value, most)};
}

Status check_branches(const PlanInput& input) {
  const Branches& b = input.branches;
  KV_TRY(in_range("sequences of a request", b.per_request, kMaxRequests));
  KV_TRY(in_range("requests times the sequences of each", input.requests * b.per_request, kMaxRequests));
  if (b.prompt_length <= input.length) return ok_status();
  return Error{ErrorCode::bad_input, fmt::format("prompt_length is {}, valid: at most the length of {}", b.prompt_length, input.length)};
}

std::string row_words(const PlannedGroup& g) {
  const format::CacheGroup& c = g.group;
  const std::string width = c.v_dim.value_or(c.head_dim) == 0 ? fmt::format("{}", c.head_dim)
                            : fmt::format("({} + {})", c.head_dim, c.v_dim.value_or(c.head_dim));
  const std::string format = c.format.k == c.format.v
                                 ? std::string(format::to_string(c.format.k))
                                 : fmt::format("{}/{}", format::to_string(c.format.k), format::to_string(c.format.v));
  return fmt::format("{} x {} x {} {}", report::format_counted(c.layers.size(), "layer"), report::format_counted(c.kv_heads, "head"), width, format);
}

// Collects lines; the sum is checked at each.
class Lines {
 public:
  explicit Lines(CapacityPlan& plan) : plan_(plan) {}
  Status add(PlanLine line) {
    KV_ASSIGN(plan_.total_bytes, checked_add(plan_.total_bytes, line.bytes));
    plan_.lines.push_back(std::move(line));
    return ok_status();
  }

 private:
  CapacityPlan& plan_;
};

Status add_weights(const PlanInput& input, CapacityPlan& plan, Lines& lines) {
  for (const PlanLine& line : input.weights) {
    KV_ASSIGN(plan.weights_bytes, checked_add(plan.weights_bytes, line.bytes));
    KV_TRY(lines.add(line));
  }
  return ok_status();
}

// What the rows of a line are made of, and what its last blocks leave empty.
std::vector<PlanPart> kv_parts(const PlannedGroup& g, const PlanInput& input, std::uint64_t bytes) {
  if (input.held) return {};   // its rows are told for all groups together
  const std::uint64_t rows = g.rows(input.length) * input.requests;   // their bytes are below `bytes`, which is checked
  const std::uint64_t scales = rows * g.layout.scale_bytes_per_token();
  const std::uint64_t payload = rows * g.layout.bytes_per_token();
  std::vector<PlanPart> parts;
  const std::uint32_t width = g.group.head_dim, rope = input.shape.rope_dim;
  if (g.kind == GroupKind::latent && rope > 0 && rope < width) {   // a row's elements have one width
    const std::uint64_t of_rope = rows * ((g.layout.bytes_per_token() - g.layout.scale_bytes_per_token()) * rope / width);
    parts = {{"latent", payload - scales - of_rope}, {"rope", of_rope}};
  } else {
    parts = {{"values", payload - scales}};
  }
  if (scales > 0) parts.push_back({"scales", scales});
  parts.push_back({"rounding", bytes - payload});
  return parts;
}

engine::PoolConfig pool_config(const PlanInput& input) {
  engine::PoolConfig config;
  config.block_tokens = input.kv.block_tokens;
  config.max_sequences = static_cast<std::uint32_t>(input.requests * input.branches.per_request);
  config.max_batched_tokens = std::max(input.batched_tokens, config.max_sequences);
  config.max_model_len = static_cast<std::uint32_t>(input.length);
  config.threads = input.threads;
  return config;
}

// Beside windows, for one prompt at a time: the rows that its next step adds before it lets go what they pass.
Status add_step(const PlanInput& input, CapacityPlan& plan, Lines& lines, std::vector<std::uint64_t>& blocks) {
  const std::uint32_t step = pool_config(input).max_batched_tokens;
  std::uint64_t bytes = 0;
  for (std::size_t at = 0; at < plan.kv.groups.size(); ++at) {
    const PlannedGroup& g = plan.kv.groups[at];
    const std::uint64_t more = g.step_blocks(input.length, step);
    KV_ASSIGN(const std::uint64_t of_group, checked_mul(more, g.layout.block_bytes()));
    KV_ASSIGN(bytes, checked_add(bytes, of_group));
    KV_ASSIGN(blocks[at], checked_add(blocks[at], more));
  }
  KV_ASSIGN(plan.cache_bytes, checked_add(plan.cache_bytes, bytes));
  if (bytes == 0) return ok_status();
  return lines.add({"kv.step", bytes, fmt::format("up to {} of a prompt in one step, beside its windows", report::format_counted(step, "row")),
                    "max_num_batched_tokens, length"});
}

Status add_kv(const PlanInput& input, CapacityPlan& plan, Lines& lines, std::vector<std::uint64_t>& blocks) {
  KV_CHECK(!input.held || input.held->blocks.size() == plan.kv.groups.size(), "each group holds its blocks");
  for (const PlannedGroup& g : plan.kv.groups) {
    const std::uint64_t each = g.blocks(input.length);
    KV_ASSIGN(std::uint64_t all, checked_mul(each, input.requests));
    if (input.held) all = input.held->blocks[blocks.size()];
    KV_ASSIGN(const std::uint64_t bytes, checked_mul(all, g.layout.block_bytes()));
    KV_ASSIGN(plan.kv_bytes, checked_add(plan.kv_bytes, bytes));
    blocks.push_back(all);
    const std::string span = g.group.window == 0 ? "" : fmt::format(", {} of {} tokens", to_string(g.kind), g.group.window);
    KV_TRY(lines.add({fmt::format("kv.{}", to_string(g.kind)), bytes,
                      fmt::format("{} of {} tokens x {} B ({}{})",
                                  input.held ? fmt::format("{} of the mix: {}", input.requests, report::format_counted(all, "block"))
                                             : fmt::format("{} x {}", input.requests, report::format_counted(each, "block")),
                                  g.layout.block_tokens(), g.layout.block_bytes(), row_words(g), span),
                      "requests, length, kv_heads, head_dim", kv_parts(g, input, bytes)}));
  }
  if (input.held) {
    plan.kv_payload_bytes = input.held->payload_bytes;
  } else {
    KV_ASSIGN(const std::uint64_t payload, plan.kv.payload_bytes(input.length));
    KV_ASSIGN(plan.kv_payload_bytes, checked_mul(payload, input.requests));
  }
  plan.kv_bytes_per_token = plan.kv.growth_bytes();
  KV_ASSIGN(plan.state_bytes, checked_mul(plan.kv.state_bytes, input.requests));
  KV_ASSIGN(plan.cache_bytes, checked_add(plan.kv_bytes, plan.state_bytes));
  if (plan.state_bytes == 0) return ok_status();
  return lines.add({"kv.state", plan.state_bytes,
                    fmt::format("{} x {} B, {}, whatever the length", input.requests, plan.kv.state_bytes,
                                report::format_counted(plan.kv.recurrent_layers, "recurrent layer")),
                    "requests, state"});
}

// Adds the further sequences of a request and the rows of drafts to `blocks`, a line for each of the two.
Status add_branches(const PlanInput& input, CapacityPlan& plan, Lines& lines, std::vector<std::uint64_t>& blocks) {
  const Branches& b = input.branches;
  PlanLine branches{"kv.branches", 0, "", "n, beams, prompt_length"}, drafts{"kv.speculative", 0, "", "speculative_tokens"};
  KV_ASSIGN(const std::uint64_t further, checked_mul(input.requests, b.per_request - 1));
  KV_ASSIGN(const std::uint64_t sequences, checked_mul(input.requests, b.per_request));
  for (std::size_t at = 0; at < plan.kv.groups.size(); ++at) {
    const PlannedGroup& g = plan.kv.groups[at];
    const auto add = [&](PlanLine& line, std::uint64_t count, std::uint64_t each) -> Status {
      KV_ASSIGN(const std::uint64_t all, checked_mul(count, each));
      KV_ASSIGN(const std::uint64_t bytes, checked_mul(all, g.layout.block_bytes()));
      KV_ASSIGN(line.bytes, checked_add(line.bytes, bytes));
      KV_ASSIGN(blocks[at], checked_add(blocks[at], all));
      return ok_status();
    };
    KV_TRY(add(branches, further, g.private_blocks(input.length, b.prompt_length)));
    KV_TRY(add(drafts, sequences, g.blocks_beyond(input.length, b.speculative_tokens)));
  }
  KV_ASSIGN(const std::uint64_t states, checked_mul(further, plan.kv.state_bytes));
  KV_ASSIGN(branches.bytes, checked_add(branches.bytes, states));
  branches.how = fmt::format("{} x {} more of a prompt of {} tokens: blocks after its full ones, with a copy of the partial one", input.requests,
                             b.per_request - 1, b.prompt_length);
  drafts.how = fmt::format("{} x blocks for {} beyond; the draft's own weights and cache apart", report::format_counted(sequences, "sequence"), report::format_counted(b.speculative_tokens, "row"));
  for (const PlanLine* line : {&branches, &drafts}) {
    KV_ASSIGN(plan.cache_bytes, checked_add(plan.cache_bytes, line->bytes));
  }
  if (b.per_request > 1) KV_TRY(lines.add(branches));
  return b.speculative_tokens > 0 ? lines.add(drafts) : ok_status();
}

Status add_engine(const PlanInput& input, CapacityPlan& plan, Lines& lines, const std::vector<std::uint64_t>& blocks) {
  store::StorePlan store;   // empty where nothing but states is kept
  if (!blocks.empty()) {
    KV_ASSIGN(store, store::plan_blocks(plan.kv.geometry(), blocks));
  }
  artifact::ModelGeometry geometry = input.geometry;
  geometry.context = std::max(geometry.context, static_cast<std::uint32_t>(input.length));
  const engine::PoolConfig config = pool_config(input);
  KV_ASSIGN(const engine::EngineFootprint engine, engine::engine_footprint(geometry, std::move(store), config));
  KV_TRY(lines.add({"kv.slack", engine.store.slack_bytes, "tails of superpages and of the last page", "block_size"}));
  KV_TRY(lines.add({"activations", engine.activations,
                    fmt::format("{} a step, {}", report::format_counted(config.max_batched_tokens, "row"), report::format_counted(config.threads, "thread")),
                    "max_num_batched_tokens, width, feed_forward"}));
  KV_TRY(lines.add({"logits", engine.logits,
                    fmt::format("{} x {} tokens f32", report::format_counted(engine.config.logits_rows, "row"), geometry.vocabulary),
                    "requests, vocabulary"}));
  KV_TRY(lines.add({"sampler", engine.sampler, fmt::format("{} x {} tokens", report::format_counted(config.threads, "thread"), geometry.vocabulary),
                    "threads, vocabulary"}));
  return lines.add({"metadata", engine.metadata(),
                    fmt::format("block pools, block tables and page tables of {}, {}", report::format_counted(config.max_sequences, "sequence"),
                                report::format_counted(engine.config.max_queued, "request")),
                    "requests, length, block_size"});
}

// REQUIRES: plan.kv is of the input.
Status add_lines(const PlanInput& input, CapacityPlan& plan) {
  Lines lines(plan);
  std::vector<std::uint64_t> blocks;
  KV_TRY(add_weights(input, plan, lines));
  KV_TRY(add_kv(input, plan, lines, blocks));
  KV_TRY(add_step(input, plan, lines, blocks));
  KV_TRY(add_branches(input, plan, lines, blocks));
  KV_TRY(add_engine(input, plan, lines, blocks));
  for (const PlanLine& line : input.fixed) KV_TRY(lines.add(line));
  return ok_status();
}

}  // namespace

artifact::ModelGeometry engine_geometry(const artifact::ModelShape& shape) {
  artifact::ModelGeometry out;
  out.architecture = shape.family;
  out.name = shape.name;
  out.layers = static_cast<std::uint32_t>(shape.layers.size());
  out.width = shape.width;
  out.heads = shape.heads;
  std::uint32_t kv_heads = 0;
  for (const artifact::LayerShape& layer : shape.layers) {
    kv_heads = std::max(kv_heads, layer.kv_heads);
    out.head_dim = std::max(out.head_dim, layer.k_dim);
    const std::uint64_t experts =
        std::uint64_t{layer.expert_width} * (shape.experts_per_token + std::uint64_t{layer.shared_experts});
    out.feed_forward = std::max({out.feed_forward, layer.feed_forward,
                                 static_cast<std::uint32_t>(std::min<std::uint64_t>(experts, 1u << 24))});
  }
  // Buffers are sized by one number of KV heads: the largest, where it divides the query heads.
  if (out.heads == 0) out.heads = 1;
  out.kv_heads.assign(out.layers, kv_heads > 0 && out.heads % kv_heads == 0 ? kv_heads : out.heads);
  if (out.feed_forward == 0) out.feed_forward = kAssumedWidening * shape.width;
  out.vocabulary = shape.vocabulary;
  out.context = shape.context;
  // As if all layers kept all of history and turned alike: windows shorten work, buffers hardly.
  out.reach.resize(out.layers);
  out.layer_rope.assign(out.layers, artifact::LayerRope::full);
  out.rope.dim = out.head_dim;
  out.tied_head = shape.tied_head;
  out.parameters = shape.parameters;
  return out;
}

Result<CapacityPlan> plan_capacity(const PlanInput& input) {
  KV_TRY(in_range("requests", input.requests, kMaxRequests));
  KV_TRY(in_range("length", input.length, kMaxLength));
  KV_TRY(check_branches(input));
  CapacityPlan plan;
  KV_ASSIGN(plan.kv, kv_groups(input.shape, input.kv));
  Status added = add_lines(input, plan);
  if (added.ok()) return plan;
  Error error = std::move(added).error();   // a size beyond 64 bits, which does not know whose it is
  error.message = fmt::format("requests {} x length {}: {}", input.requests, input.length, error.message);
  return error;
}

Result<bool> plan_fits(const PlanInput& input, std::uint64_t memory) {
  const Result<CapacityPlan> plan = plan_capacity(input);
  return at_most(plan.ok() ? Result<std::uint64_t>(plan->total_bytes) : plan.error(), memory);
}

Status check_weights_known(const PlanInput& input) {
  if (!input.weights.empty()) return ok_status();
  return Error{ErrorCode::bad_input,
               fmt::format("{}: nothing says how many weights there are, so what fits beside them cannot be said; valid: --set "
                           "parameters=70B, or --set feed_forward=N where that width is missing", input.shape.name)};
}

Result<std::uint64_t> most_requests(const PlanInput& input, std::uint64_t memory) {
  KV_CHECK(!input.held, "the sequences have one length");
  return largest_requests(input, [&](const PlanInput& one) { return plan_fits(one, memory); });
}

Result<std::uint64_t> longest_length(const PlanInput& input, std::uint64_t memory) {
  KV_CHECK(!input.held, "the sequences have one length");
  return largest_length(input, [&](const PlanInput& one) { return plan_fits(one, memory); });
}

}  // namespace kvasir::plan
