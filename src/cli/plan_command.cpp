// kvasir plan: the memory that a model will take, before anything is loaded.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "artifact/shape_override.hpp"
#include "base/units.hpp"
#include "cli/command.hpp"
#include "cli/engine_flags.hpp"
#include "cli/exit_code.hpp"
#include "cli/option_values.hpp"
#include "cli/planned_model.hpp"
#include "plan/capacity_plan.hpp"
#include "report/json.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

using report::Json;

constexpr std::size_t kShownName = 80;

struct Flags {
  std::string model;
  std::string kv_cache_dtype = "f16";
  std::uint64_t requests = 1;
  std::uint64_t length = 0;   // 0: the model's context
  std::uint64_t memory = 0;   // bytes; 0: not asked
  std::uint32_t block_size = 32;
  std::uint32_t max_num_batched_tokens = 512;
  std::uint32_t threads = default_threads();
  std::vector<std::string> set;
  bool json = false;
};

// What --memory makes of a plan.
struct Fit {
  bool fits = false;
  std::uint64_t max_sequences = 0, longest_length = 0;
};

struct Planned {
  plan::PlanInput input;
  plan::CapacityPlan plan;
  std::optional<Fit> fit;
  std::vector<std::string> warnings;
};

std::string type_names() {
  std::string names;
  for (const format::KvType type : format::kKvTypes) names += fmt::format("{}{}", names.empty() ? "" : ", ", format::to_string(type));
  return names;
}

Result<format::KvFormat> kv_format(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto k = format::parse_kv_type(text.substr(0, slash));
  const auto v = slash == std::string::npos ? k : format::parse_kv_type(text.substr(slash + 1));
  if (k && v) return format::KvFormat{*k, *v};
  return Error{ErrorCode::usage, fmt::format("--kv-cache-dtype: '{}' is not a type or K/V; valid: {}, or two of them as int8/f16", text, type_names())};
}

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

Result<Planned> make(const Flags& flags) {
  Planned out;
  KV_ASSIGN(PlannedModel model, read_planned_model(flags.model, flags.set));
  plan::PlanInput& input = out.input;
  input.shape = std::move(model.shape);
  input.geometry = std::move(model.geometry);
  input.weights = std::move(model.weights);
  KV_ASSIGN(input.kv.format, kv_format(flags.kv_cache_dtype));
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

Json to_json(const Flags& flags, const Planned& planned) {
  const plan::PlanInput& input = planned.input;
  const plan::CapacityPlan& plan = planned.plan;
  Json json = {{"model", input.shape.name}, {"family", input.shape.family}, {"requests", input.requests},
               {"length", input.length}, {"kv_cache_dtype", flags.kv_cache_dtype}, {"block_tokens", input.kv.block_tokens},
               {"weights_bytes", plan.weights_bytes}, {"kv_bytes", plan.kv_bytes}, {"kv_payload_bytes", plan.kv_payload_bytes},
               {"kv_bytes_per_token", plan.kv_bytes_per_token}, {"state_bytes", plan.state_bytes}, {"total_bytes", plan.total_bytes}};
  json["memory_bytes"] = planned.fit ? Json(flags.memory) : Json(nullptr);
  json["fits"] = planned.fit ? Json(planned.fit->fits) : Json(nullptr);
  json["max_sequences"] = planned.fit ? Json(planned.fit->max_sequences) : Json(nullptr);
  json["longest_length"] = planned.fit ? Json(planned.fit->longest_length) : Json(nullptr);
  json["lines"] = Json::array();
  for (const plan::PlanLine& line : plan.lines) {
    json["lines"].push_back({{"name", line.name}, {"bytes", line.bytes}, {"how", line.how}, {"field", line.field}});
  }
  json["warnings"] = planned.warnings;
  return json;
}

std::string sequences(std::uint64_t count) {
  return fmt::format("{} sequence{}", report::format_count(count), count == 1 ? "" : "s");
}

void print(const Flags& flags, const Planned& planned, std::ostream& out) {
  const plan::PlanInput& input = planned.input;
  const plan::CapacityPlan& plan = planned.plan;
  out << fmt::format("{}: {} of {} tokens, {} cache\n\n", report::printable(report::shorten(input.shape.name, kShownName)), sequences(input.requests),
                     report::format_count(input.length), flags.kv_cache_dtype);
  report::Table table({{"", report::Align::left}, {"size", report::Align::right}, {"how", report::Align::left}});
  for (const plan::PlanLine& line : plan.lines) table.add_row({line.name, format_bytes(line.bytes), line.how});
  table.add_rule();
  table.add_row({"total", format_bytes(plan.total_bytes), fmt::format("{} B", report::format_count(plan.total_bytes))});
  out << table.render();
  out << fmt::format("\nOne more token of a long sequence: {}. Rows take {} of the cache's {}.\n", format_bytes(plan.kv_bytes_per_token),
                     format_bytes(plan.kv_payload_bytes), format_bytes(plan.kv_bytes));
  if (planned.fit) {
    const Fit& fit = *planned.fit;
    out << fmt::format("{} {}. At this length {} would fit{}; of {} each could have {}.\n",
                       fit.fits ? "Fits in" : "Does not fit in", format_bytes(flags.memory),
                       fit.max_sequences == 0 ? "none" : sequences(fit.max_sequences),
                       fit.max_sequences == plan::kMaxRequests ? " (more are not looked for)" : "", sequences(input.requests),
                       fit.longest_length == 0 ? "no token at all" : report::format_count(fit.longest_length) + " tokens");
  }
  for (const std::string& warning : planned.warnings) out << "warning: " << report::printable(warning) << '\n';
}

int run_plan(const Flags& flags, Console& console) {
  Result<Planned> planned = make(flags);
  if (!planned.ok()) return report_error(console, planned.error());
  if (flags.json) {
    console.out << report::to_json_line(to_json(flags, *planned)) << '\n';
  } else {
    print(flags, *planned, console.out);
  }
  return planned->fit && !planned->fit->fits ? kExitNo : kExitOk;
}

}  // namespace

Command add_plan(CLI::App& root) {
  auto flags = std::make_shared<Flags>();
  CLI::App* app = root.add_subcommand("plan", "Tell the memory a model will take: a GGUF, a config.json or a known model, nothing loaded");
  app->add_option("MODEL,-m,--model", flags->model, "A GGUF file, a config.json or its folder, or the name of a known model (llama-3-8b)")
      ->type_name("MODEL")->required();
  app->add_option("--requests", flags->requests, "Sequences held at once (default 1)")->check(whole_number(1, plan::kMaxRequests))->type_name("N");
  app->add_option("--length", flags->length, "Tokens of each, prompt and answer (default: the model's context)")
      ->check(whole_number(1, plan::kMaxLength))->type_name("N");
  app->add_option("--kv-cache-dtype", flags->kv_cache_dtype, "How K and V are stored: " + type_names() + "; K and V apart as int8/f16 (default f16)")
      ->check(not_empty())->type_name("TYPE");
  app->add_option("--memory", flags->memory, "Memory to fit into, as 16GiB: how many sequences, how long, and exit code 3 if it does not fit")
      ->transform(byte_size())->type_name("SIZE");
  app->add_option("--block-size", flags->block_size, "Tokens of one cache block: 16, 32, 64, 128 or 256 (default 32)")
      ->check(one_of({"16", "32", "64", "128", "256"}))->type_name("N");
  app->add_option("--max-num-batched-tokens", flags->max_num_batched_tokens, "Tokens of one step, prompts and answers together (default 512)")
      ->check(whole_number(1, plan::kMaxRequests))->type_name("N");
  app->add_option("--threads", flags->threads, "Threads of the engine (default: this machine's processors)")->check(whole_number(1, 1024))->type_name("N");
  app->add_option("--set", flags->set, fmt::format("Another value for a field of the model, as kv_heads=8; may be given several times, and applies in that order. Fields: {}",
                                                    fmt::join(artifact::override_keys(), ", ")))->type_name("KEY=VALUE");
  app->add_flag("--json", flags->json, "One JSON object");
  return {app, &flags->model, [flags](Console& console) { return run_plan(*flags, console); }};
}

}  // namespace kvasir::cli
