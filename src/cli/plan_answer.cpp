#include "cli/plan_answer.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/planned_model.hpp"

namespace kvasir::cli {
namespace {

std::vector<std::string> warnings_of(const plan::PlanInput& input, const plan::CapacityPlan& plan) {
  std::vector<std::string> out;
  if (input.length > input.shape.context) {
    out.push_back(fmt::format("length {} is beyond the {} tokens that the model was trained for", input.length, input.shape.context));
  }
  const std::uint64_t rounding = plan.kv_bytes - plan.kv_payload_bytes;
  if (plan.kv_bytes > 0 && static_cast<double>(rounding) > 0.02 * static_cast<double>(plan.kv_bytes)) {
    out.push_back(fmt::format("blocks of {} tokens leave {:.1f} % of the cache empty at this length; smaller blocks waste less",
                              input.kv.block_tokens, 100.0 * static_cast<double>(rounding) / static_cast<double>(plan.kv_bytes)));
  }
  if (plan.weights_bytes == 0) out.push_back("nothing says how many weights there are, so they are not in the total: --set parameters=70B, or weights by --set feed_forward=N");
  for (const std::string& field : input.shape.unverified) out.push_back(fmt::format("not verified at its source: {}", field));
  return out;
}

}  // namespace

Result<Planned> answer_plan(const PlanFlags& flags) {
  Planned out;
  KV_ASSIGN(PlannedModel model, read_planned_model(flags.model, flags.set));
  plan::PlanInput& input = out.input;
  input.shape = std::move(model.shape);
  input.geometry = std::move(model.geometry);
  input.weights = std::move(model.weights);
  KV_ASSIGN(input.kv.format, parse_kv_format(flags.kv_cache_dtype));
  input.kv.block_tokens = flags.block_size;
  input.requests = flags.requests;
  input.length = flags.length > 0 ? flags.length : input.shape.context;
  input.batched_tokens = flags.max_num_batched_tokens;
  input.threads = flags.threads;
  KV_ASSIGN(out.plan, plan::plan_capacity(input));
  out.warnings = warnings_of(input, out.plan);
  if (flags.memory == 0) return out;
  Fit& fit = out.fit.emplace();
  fit.fits = out.plan.total_bytes <= flags.memory;
  KV_ASSIGN(fit.max_sequences, plan::most_requests(input, flags.memory));
  KV_ASSIGN(fit.longest_length, plan::longest_length(input, flags.memory));
  return out;
}

}  // namespace kvasir::cli
