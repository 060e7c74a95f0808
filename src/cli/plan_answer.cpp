#include "cli/plan_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "cli/plan_warnings.hpp"
#include "plan/planned_model.hpp"
#include "plan/warnings.hpp"

namespace kvasir::cli {
namespace {

// As command lines name a model: the folder of a configuration.
std::string served_name(const std::string& model) {
  const std::filesystem::path path(model);
  if (path.filename() != "config.json") return model;
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

// A name that is no path and no repository ("meta-llama/Llama-3-8B").
bool is_planners_name(const std::string& model) {
  return !plan::looks_like_a_path(model) && (model.find('/') == std::string::npos || model.find(' ') != std::string::npos);
}

// "each", or axes joined by commas.
Result<std::vector<std::vector<plan::Axis>>> tables_asked(const std::string& text) {
  std::vector<std::vector<plan::Axis>> tables;
  if (text == "each") {
    for (const plan::Axis axis : plan::kAxes) tables.push_back({axis});
    return tables;
  }
  std::vector<plan::Axis> axes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    const auto axis = plan::parse_axis(name);
    if (!axis) return Error{ErrorCode::usage, fmt::format("--what-if: '{}' is no axis; valid: each, or formats, heads, blocks, windows joined by commas", name)};
    axes.push_back(*axis);
    begin = end + 1;
  }
  tables.push_back(std::move(axes));
  return tables;
}

Status add_what_if(const PlanFlags& flags, Planned& out) {
  if (flags.what_if.empty()) return ok_status();
  KV_ASSIGN(std::vector<std::vector<plan::Axis>> tables, tables_asked(flags.what_if));
  for (std::vector<plan::Axis>& axes : tables) {
    KV_ASSIGN(std::vector<plan::Alternative> rows, plan::what_if(out.input, axes, out.device.one_memory()));
    out.what_if.push_back({std::move(axes), std::move(rows)});
  }
  return ok_status();
}

Result<Fit> fit_of(const Planned& planned) {
  const plan::PlanInput& input = planned.input;
  const PlannedDevice& device = planned.device;
  Fit fit;
  fit.used = planned.plan.total_bytes;
  if (planned.mix) {
    fit.max_sequences = *planned.mix->fit;
  } else if (device.parallel) {
    fit.used = device.parallel->ranks[device.parallel->worst].plan.total_bytes;
    KV_ASSIGN(fit.max_sequences, plan::most_requests(input, device.layout, device.memory));
    KV_ASSIGN(fit.longest_length, plan::longest_length(input, device.layout, device.memory));
  } else {
    KV_ASSIGN(fit.max_sequences, plan::most_requests(input, device.memory));
    KV_ASSIGN(fit.longest_length, plan::longest_length(input, device.memory));
  }
  fit.fits = fit.used <= device.memory;
  fit.free = fit.fits ? device.memory - fit.used : 0;
  return fit;
}

// What is answered for one length only, or for one device.
Status check_mix_alone(const PlanFlags& flags, const Planned& planned) {
  const plan::Branches& branches = planned.input.branches;
  const char* other = !flags.what_if.empty() ? "--what-if" : !flags.html.empty() ? "--html" : branches.per_request > 1 ? "--n and --beams"
                      : branches.speculative_tokens > 0 ? "--speculative-tokens" : !planned.device.layout.is_one() ? "several devices" : nullptr;
  if (other == nullptr) return ok_status();
  return Error{ErrorCode::usage, fmt::format("--lengths is of many lengths and {} of one, valid: one of the two", other)};
}

}  // namespace

Result<Planned> answer_plan(const PlanFlags& flags) {
  Planned out;
  KV_ASSIGN(plan::PlannedModel model, plan::read_planned_model(flags.model, flags.set));
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
  KV_ASSIGN(out.device, choose_device(flags.on, flags.memory, input));
  if (out.device.memory > 0) KV_TRY(plan::check_weights_known(input));
  if (!flags.mix.lengths.empty()) {
    KV_TRY(check_mix_alone(flags, out));
    KV_ASSIGN(out.mix, answer_mix(flags.mix, flags.length, out.device.memory, input));
  }
  KV_ASSIGN(out.plan, plan::plan_capacity(input));
  const std::uint64_t typical = out.mix ? static_cast<std::uint64_t>(std::llround(out.mix->summary.mean)) : input.length;
  KV_TRY(plan_device(flags.on, input, out.plan, typical, out.device));
  if (out.device.memory > 0) {
    KV_ASSIGN(out.fit, fit_of(out));
  }
  out.warnings = plan::warnings_of(input, out.plan);
  out.warnings.insert(out.warnings.end(), model.warnings.begin(), model.warnings.end());
  for (std::string& warning : plan_warnings(out)) out.warnings.push_back(std::move(warning));
  if (out.mix) out.warnings.insert(out.warnings.end(), out.mix->warnings.begin(), out.mix->warnings.end());
  out.launch = plan::launch_commands({.model = served_name(flags.model), .is_name = is_planners_name(flags.model), .is_changed = !flags.set.empty(),
                                      .input = input, .plan = out.plan, .parallel = out.device.parallel ? &*out.device.parallel : nullptr});
  KV_TRY(add_what_if(flags, out));
  return out;
}

}  // namespace kvasir::cli
