#include "cli/plan_device_flags.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/units.hpp"
#include "cli/option_values.hpp"
#include "cli/plan_device.hpp"
#include "plan/devices.hpp"
#include "report/json.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

constexpr double kMostRate = 1e9;  // of the units on the command line: far above any machine, and no product overflows

std::string rate(double value, double unit) { return value > 0 ? fmt::format("{:.6g}", value / unit) : "?"; }

std::string device_list() {
  report::Table table({{"name", report::Align::left},
                       {"device", report::Align::left},
                       {"memory", report::Align::right},
                       {"GB/s", report::Align::right},
                       {"f16 T/s", report::Align::right},
                       {"int8 T/s", report::Align::right},
                       {"f32 T/s", report::Align::right},
                       {"link GB/s", report::Align::right},
                       {"source", report::Align::left}});
  for (const plan::Device& d : plan::devices()) {
    table.add_row({std::string(d.name), std::string(d.title),
                   d.memory > 0 ? fmt::format("{} GB", d.memory / 1'000'000'000) : "-", rate(d.bandwidth, 1e9),
                   rate(d.peak_f16, 1e12), rate(d.peak_int8, 1e12), rate(d.peak_f32, 1e12), rate(d.link, 1e9),
                   std::string(d.source)});
  }
  std::string text =
      table.render() +
      "T/s: 10^12 dense operations a second. ?: not stated. Beside these: this (this machine's free memory).";
  return text;
}

std::string devices_json() {
  report::Json list = report::Json::array();
  for (const plan::Device& device : plan::devices()) list.push_back(device_json(device));
  return report::to_json_line(list);
}

bool parse_number(std::string_view text, std::uint32_t& value) {
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc{} && rest == text.data() + text.size() && value < artifact::shape_limits::kMaxLayers;
}

void add_layout_flags(CLI::App& app, PlanDeviceFlags& flags) {
  const auto size = [] { return whole_number(1, plan::kMaxParallel); };
  app.add_option("--tensor-parallel-size,--tp", flags.tensor,
                 "Devices that share each layer (default: as many as --device names). Parallel sizes are planned only: "
                 "the engine here runs on one")
      ->check(size())
      ->type_name("N");
  app.add_option("--pipeline-parallel-size,--pp", flags.pipeline,
                 "Stages of layers, on devices of their own (default 1). Planned only")
      ->check(size())
      ->type_name("N");
  app.add_option("--data-parallel-size,--dp", flags.data, "Replicas that share the requests (default 1). Planned only")
      ->check(size())
      ->type_name("N");
  app.add_flag("--enable-expert-parallel", flags.expert,
               "Whole experts on each of tensor x data devices, instead of a part of every expert. Planned only");
}

}  // namespace

void add_plan_device_flags(CLI::App& app, PlanDeviceFlags& flags) {
  app.add_option("--device", flags.device,
                 "What to plan for: a name of --list-devices, a100-80gb*8 for eight, or this. Its memory, unless "
                 "--memory is given, is for each one; its rates bound the speed")
      ->check(not_empty())
      ->type_name("NAME[*N]");
  app.add_flag_callback(
      "--list-devices", [&app] { throw CLI::CallForVersion(app.count("--json") > 0 ? devices_json() : device_list(), 0); },
      "Print the devices known by name, with the source of each number, and exit");
  app.add_option("--bandwidth", flags.bandwidth, "Memory bandwidth of a device in 10^9 bytes/s (default: the device's)")
      ->check(number(1e-3, kMostRate))
      ->type_name("GB/S");
  app.add_option("--peak", flags.peak,
                 "Dense operations of a device in 10^12/s (default: the device's for f16, else f32)")
      ->check(number(1e-6, kMostRate))
      ->type_name("TERA");
  app.add_option("--efficiency", flags.efficiency,
                 "Share of both rates that is reached, above 0 to 1 (default 1: times are lower bounds, no forecast)")
      ->check(number(1e-3, 1))
      ->type_name("X");
  app.add_option("--target-itl", flags.target_itl,
                 "Milliseconds a decode step may take: the largest batch within, and whether it or memory is the limit")
      ->check(number(1e-3, 1e6))
      ->type_name("MS");
  add_layout_flags(app, flags);
  app.add_flag("--gpu-runtime", flags.runtime,
               "Lines for a CUDA runtime, graphs and communicator though --device names no GPU of NVIDIA");
  app.add_option("--speculative-tokens", flags.speculative_tokens,
                 "Rows that each sequence holds for draft tokens, 0 to 1024 (default 0)")
      ->check(whole_number(0, 1024))
      ->type_name("K");
  app.add_option("--n", flags.n, "Answers to each prompt, which they share (default 1); needs --prompt-length")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option("--beams", flags.beams, "Beams of each answer (default 1); they share as --n does")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option(
         "--prompt-length", flags.prompt_length,
         "Tokens of the prompt, of --length: what --n and --beams share, and what prefill is timed for (default: all)")
      ->check(whole_number(1, plan::kMaxLength))
      ->type_name("N");
  app.add_option("--reserve", flags.reserve,
                 "Memory to leave for failures, as 2GiB, or 5% of the memory (default: none)")
      ->check(not_empty())
      ->type_name("SIZE|PERCENT");
  app.add_option(
         "--kv-cache-dtype-skip-layers", flags.skip_layers,
         "Layers whose cache stays f16: numbers, ranges and sliding_window, as 0,2-4,sliding_window (default: none)")
      ->check(not_empty())
      ->type_name("LAYERS");
}

Result<std::uint64_t> parse_reserve(const std::string& text, std::uint64_t memory) {
  const auto wrong = [&text](std::string_view why) {
    return Error{ErrorCode::usage, fmt::format("--reserve: '{}' {}", text, why)};
  };
  if (!text.ends_with('%')) {
    Result<std::uint64_t> bytes = parse_bytes(text);
    if (!bytes.ok()) return Error{ErrorCode::usage, "--reserve: " + bytes.error().message};
    return bytes;
  }
  double percent = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size() - 1, percent);
  if (status != std::errc{} || rest != text.data() + text.size() - 1 || !(percent >= 0 && percent < 100))
    return wrong("is not a percentage from 0% to below 100%");
  if (memory == 0) return wrong("is a share of the memory, which needs --memory or a --device with one");
  return static_cast<std::uint64_t>(static_cast<double>(memory) * percent / 100);
}

Status parse_skip_layers(const std::string& text, plan::KvChoice& kv) {
  for (std::size_t begin = 0; begin <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (part == "sliding_window") {
      kv.skip_windows = true;
      continue;
    }
    const std::size_t dash = part.find('-');
    std::uint32_t first = 0, last = 0;
    const bool valid = parse_number(part.substr(0, dash), first) &&
                       (dash == std::string_view::npos || parse_number(part.substr(dash + 1), last));
    if (dash == std::string_view::npos) last = first;
    if (!valid || last < first)
      return Error{
          ErrorCode::usage,
          fmt::format("--kv-cache-dtype-skip-layers: '{}' is no layer; valid: numbers, ranges as 2-4, sliding_window",
                      part)};
    for (std::uint32_t layer = first; layer <= last; ++layer) kv.skip_layers.push_back(layer);
  }
  return ok_status();
}

}  // namespace kvasir::cli
