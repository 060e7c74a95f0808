// The machine's part of what `kvasir plan` prints.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/units.hpp"
#include "cli/plan_device.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

using report::Json;

Json optional_json(const std::optional<std::uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }
Json known(double value) { return value > 0 ? Json(value) : Json(nullptr); }

// bound: null where a rate is unknown.
Json step_json(const plan::StepTime& step) {
  const bool both = step.bytes_seconds > 0 && step.operations_seconds > 0;
  return {{"seconds", step.seconds()},
          {"bytes", step.bytes},
          {"bytes_seconds", step.bytes_seconds},
          {"operations", step.operations},
          {"operations_seconds", step.operations_seconds},
          {"bound", both ? Json(step.is_bandwidth_bound() ? "bandwidth" : "operations") : Json(nullptr)}};
}

double per_stream(const Speed& speed) { return speed.decode.seconds() > 0 ? 1 / speed.decode.seconds() : 0; }

Json speed_json(const PlanDeviceFlags& flags, const Speed& speed) {
  Json json = {{"bandwidth", known(speed.machine.bandwidth)},
               {"peak", known(speed.machine.peak)},
               {"efficiency", speed.machine.efficiency},
               {"batch", speed.batch},
               {"prompt", speed.prompt},
               {"decode", step_json(speed.decode)},
               {"prefill", step_json(speed.prefill)},
               {"tokens_per_second_stream", per_stream(speed)},
               {"tokens_per_second", per_stream(speed) * static_cast<double>(speed.streams)},
               {"weights_wall_batch", optional_json(speed.weights_wall)},
               {"wall_batch", optional_json(speed.wall)}};
  json["target_itl_ms"] = known(flags.target_itl);
  json["max_batch"] = optional_json(speed.most_batch);
  return json;
}

std::uint64_t other_bytes(const plan::CapacityPlan& plan) {
  return plan.total_bytes - plan.weights_bytes - plan.cache_bytes;
}

Json rank_json(const plan::RankPlan& one) {
  return {{"stage", one.rank.stage},
          {"first_layer", one.rank.first_layer},
          {"layers", one.rank.layers},
          {"experts", one.rank.experts},
          {"devices", one.rank.devices},
          {"weights_bytes", one.plan.weights_bytes},
          {"kv_bytes", one.plan.kv_bytes},
          {"cache_bytes", one.plan.cache_bytes},
          {"other_bytes", other_bytes(one.plan)},
          {"total_bytes", one.plan.total_bytes}};
}

std::string times(const plan::StepTime& step) {
  const std::string operations =
      step.operations_seconds > 0 ? report::format_seconds(step.operations_seconds) + " to compute" : "peak unknown";
  return fmt::format("{} ({} to read {}, {})", report::format_seconds(step.seconds()),
                     report::format_seconds(step.bytes_seconds), format_bytes(static_cast<std::uint64_t>(step.bytes)),
                     operations);
}

std::string wall_words(const Speed& speed) {
  if (speed.machine.peak == 0) return "The peak is unknown: no batch can be said to leave the bandwidth wall.";
  const std::string weights =
      speed.weights_wall ? fmt::format("at a batch of {}", report::format_count(*speed.weights_wall)) : "at no batch";
  const std::string both = speed.wall ? fmt::format("at {}", report::format_count(*speed.wall))
                                      : "at none: each sequence brings more to read than to compute";
  return fmt::format("Weights alone leave the bandwidth wall {}; with the cache of this length {}.", weights, both);
}

void print_speed(const PlanDeviceFlags& flags, const Speed& speed, std::ostream& out) {
  out << (speed.machine.efficiency == 1 ? "\nAt best (a bound: no machine is faster, most are slower):\n"
                                        : fmt::format("\nAt {:g} of the machine's rates:\n", speed.machine.efficiency));
  report::Table table({{"", report::Align::left}, {"", report::Align::left}});
  table.add_row({fmt::format("a decode step of {}", report::format_count(speed.batch)), times(speed.decode)});
  table.add_row({fmt::format("prefill of {} tokens", report::format_count(speed.prompt)), times(speed.prefill)});
  table.add_row({"tokens/s", fmt::format("{} a stream, {} in all", report::format_rate(per_stream(speed)),
                                         report::format_rate(per_stream(speed) * static_cast<double>(speed.streams)))});
  out << table.render() << wall_words(speed) << '\n';
  if (speed.most_batch) {
    out << fmt::format("Within {:g} ms a step: {}{}.\n", flags.target_itl, report::format_counted(*speed.most_batch, "sequence"),
                       *speed.most_batch == plan::kMaxRequests ? " (more are not looked for)" : "");
  }
}

void print_ranks(const plan::ParallelPlan& parallel, std::ostream& out) {
  const plan::ParallelLayout& layout = parallel.layout;
  out << fmt::format(
      "\nOn {} devices (tensor {} x pipeline {} x data {}{}), {} a replica (above: the whole model on "
      "one):\n",
      layout.devices(), layout.tensor, layout.pipeline, layout.data, layout.expert ? ", whole experts" : "",
      report::format_counted(parallel.requests, "sequence"));
  const auto right = report::Align::right;
  report::Table table({{"stage", right},
                       {"layers", right},
                       {"devices", right},
                       {"weights", right},
                       {"cache", right},
                       {"other", right},
                       {"total", right},
                       {"", report::Align::left}});
  for (std::size_t at = 0; at < parallel.ranks.size(); ++at) {
    const auto& [rank, plan] = parallel.ranks[at];
    table.add_row({fmt::format("{}", rank.stage),
                   fmt::format("{}-{}", rank.first_layer, rank.first_layer + rank.layers - 1),
                   report::format_count(rank.devices), format_bytes(plan.weights_bytes), format_bytes(plan.cache_bytes),
                   format_bytes(other_bytes(plan)), format_bytes(plan.total_bytes),
                   fmt::format("{}{}", rank.experts > 0 ? report::format_counted(rank.experts, "expert") + " a layer " : "",
                               at == parallel.worst ? "worst" : "")});
  }
  out << table.render();
}

}  // namespace

Json device_json(const plan::Device& device) {
  return {{"name", device.name},
          {"title", device.title},
          {"kind", plan::to_string(device.kind)},
          {"memory_bytes", device.memory},
          {"bandwidth", known(device.bandwidth)},
          {"peak_f16", known(device.peak_f16)},
          {"peak_int8", known(device.peak_int8)},
          {"peak_f32", known(device.peak_f32)},
          {"link", known(device.link)},
          {"source", device.source}};
}

void add_device_json(const PlanDeviceFlags& flags, const PlannedDevice& device, Json& json) {
  json["device"] = nullptr;
  if (device.choice) {
    json["device"] = device_json(device.choice->device);
    json["device"]["count"] = device.layout.devices();
  }
  json["roofline"] = device.speed ? speed_json(flags, *device.speed) : Json(nullptr);
  json["parallel"] = nullptr;
  json["devices"] = nullptr;
  if (!device.parallel) return;
  const plan::ParallelPlan& p = *device.parallel;
  json["parallel"] = {{"tensor", p.layout.tensor}, {"pipeline", p.layout.pipeline}, {"data", p.layout.data},
                      {"expert", p.layout.expert}, {"devices", p.layout.devices()}, {"requests", p.requests},
                      {"kv_heads", p.kv_heads},    {"kv_copies", p.kv_copies},      {"worst", p.worst}};
  json["devices"] = Json::array();
  for (const plan::RankPlan& one : p.ranks) json["devices"].push_back(rank_json(one));
}

void print_device(const PlanDeviceFlags& flags, const PlannedDevice& device, std::ostream& out) {
  if (device.parallel) print_ranks(*device.parallel, out);
  if (device.choice) {
    const plan::Device& d = device.choice->device;
    out << fmt::format("\n{}: {}, {} GB/s ({})\n", d.title,
                       d.memory > 0 ? format_bytes(d.memory) : "memory not its own",
                       d.bandwidth > 0 ? fmt::format("{:.6g}", d.bandwidth / 1e9) : "unknown", d.source);
  }
  if (device.speed) print_speed(flags, *device.speed, out);
  if (!device.unlimited.empty()) out << "No speed: " << report::printable(device.unlimited) << '\n';
}

}  // namespace kvasir::cli
