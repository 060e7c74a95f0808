#include "cli/plan_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/exit_code.hpp"
#include "plan/runtime.hpp"
#include "platform/memory.hpp"

namespace kvasir::cli {
namespace {

// This machine's free memory; nobody states its rates.
Result<plan::DeviceChoice> this_machine() {
  KV_ASSIGN(const platform::Headroom headroom, platform::read_headroom());
  plan::Device device{.name = "this",
                      .title = "this machine",
                      .kind = plan::DeviceKind::cpu,
                      .source = "memory that is free now; --bandwidth and --peak are yours to say"};
  device.memory = headroom.bytes();
  return plan::DeviceChoice{device, 1};
}

Result<plan::ParallelLayout> layout_of(const PlanDeviceFlags& flags, const std::optional<plan::DeviceChoice>& choice) {
  plan::ParallelLayout layout{std::max(flags.tensor, 1u), std::max(flags.pipeline, 1u), std::max(flags.data, 1u),
                              flags.expert};
  const std::uint32_t named = choice ? choice->count : 1;
  if (named == 1) return layout;
  if (flags.tensor == 0) {
    const std::uint64_t others = std::uint64_t{layout.pipeline} * layout.data;
    if (named % others != 0 || named / others > plan::kMaxParallel)
      return usage_error(
          fmt::format("--device names {} devices, which are not a multiple of pipeline x data = {} up to {} times",
                      named, others, plan::kMaxParallel));
    layout.tensor = static_cast<std::uint32_t>(named / others);
  }
  if (layout.devices() != named)
    return usage_error(fmt::format("--device names {} devices, but tensor x pipeline x data = {} x {} x {} are {}", named,
                             layout.tensor, layout.pipeline, layout.data, layout.devices()));
  return layout;
}

Status add_branches(const PlanDeviceFlags& flags, plan::PlanInput& input) {
  input.branches.speculative_tokens = flags.speculative_tokens;
  input.branches.per_request = flags.n * flags.beams;
  if (flags.n * flags.beams == 1) return ok_status();
  if (flags.prompt_length == 0)
    return usage_error("--n and --beams need --prompt-length: how many tokens of --length they share");
  input.branches.prompt_length = flags.prompt_length;
  return ok_status();
}

plan::Machine machine_of(const PlanDeviceFlags& flags, const std::optional<plan::DeviceChoice>& choice) {
  plan::Machine machine{choice ? choice->device.bandwidth : 0, choice ? choice->device.peak() : 0, flags.efficiency};
  if (flags.bandwidth > 0) machine.bandwidth = flags.bandwidth * 1e9;
  if (flags.peak > 0) machine.peak = flags.peak * 1e12;
  return machine;
}

// What is told of steps where nothing can time them.
Status check_timing_flags(const PlanDeviceFlags& flags, const plan::Machine& machine) {
  if (machine.bandwidth > 0) return ok_status();
  const char* idle = flags.efficiency != 1 ? "--efficiency" : flags.peak > 0 ? "--peak" : nullptr;
  if (idle != nullptr) return usage_error(fmt::format("{}: no step is timed without a bandwidth, valid: with --bandwidth GB/S or a --device that has one", idle));
  if (flags.prompt_length == 0 || flags.n * flags.beams > 1) return ok_status();
  return usage_error("--prompt-length: nothing here depends on it, valid: with --n, --beams, --bandwidth or a --device that has a bandwidth");
}

}  // namespace

Result<PlannedDevice> choose_device(const PlanDeviceFlags& flags, std::uint64_t memory, plan::PlanInput& input) {
  PlannedDevice out;
  if (flags.device == "this") {
    KV_ASSIGN(out.choice, this_machine());
  } else if (flags.device.starts_with("this*")) {
    return usage_error(fmt::format("--device: '{}' is several machines, valid: this, or a name with *N", flags.device));
  } else if (!flags.device.empty()) {
    KV_ASSIGN(out.choice, plan::find_device(flags.device));
  }
  out.memory = memory > 0 || !out.choice ? memory : out.choice->device.memory;
  KV_ASSIGN(out.layout, layout_of(flags, out.choice));
  KV_TRY(plan::check_layout(input.shape, out.layout));
  KV_TRY(add_branches(flags, input));
  if (flags.prompt_length > input.length)
    return Error{ErrorCode::usage,
                 fmt::format("--prompt-length: {} is more than the length of {}", flags.prompt_length, input.length)};
  KV_TRY(parse_skip_layers(flags.skip_layers, input.kv));
  if (flags.runtime || (out.choice && out.choice->device.kind == plan::DeviceKind::gpu))
    input.fixed = plan::runtime_lines(out.layout.devices() > 1);
  if (flags.reserve.empty()) return out;
  KV_ASSIGN(const std::uint64_t reserve, parse_reserve(flags.reserve, out.memory));
  input.fixed.push_back({"reserve", reserve, fmt::format("{}, left for failures", flags.reserve), "reserve"});
  return out;
}

Status plan_device(const PlanDeviceFlags& flags, const plan::PlanInput& input, const plan::CapacityPlan& plan,
                   std::uint64_t length, PlannedDevice& device) {
  if (!device.layout.is_one()) {
    KV_ASSIGN(device.parallel, plan::plan_parallel(input, device.layout));
  }
  const plan::Machine machine = machine_of(flags, device.choice);
  KV_TRY(check_timing_flags(flags, machine));
  if (!device.choice && flags.target_itl == 0 && machine.bandwidth == 0 && machine.peak == 0) return ok_status();
  if (machine.bandwidth == 0) {
    device.unlimited = "no bandwidth is known, so nothing bounds a step: --bandwidth GB/S";
    return flags.target_itl > 0 ? usage_error("--target-itl: " + device.unlimited) : ok_status();
  }
  Result<plan::StepWork> work = plan::step_work(input, plan, device.layout);
  if (!work.ok() && work.error().code != ErrorCode::unsupported) return std::move(work).error();
  if (!work.ok()) {
    device.unlimited = work.error().message;
    return flags.target_itl > 0 ? usage_error("--target-itl: " + device.unlimited) : ok_status();
  }
  Speed& speed = device.speed.emplace();
  speed.machine = machine;
  speed.streams = input.requests * input.branches.per_request;
  const std::uint64_t batches = std::uint64_t{device.layout.data} * device.layout.pipeline;  // under way at once
  speed.batch = (speed.streams + batches - 1) / batches;
  speed.length = length;
  speed.prompt = flags.prompt_length > 0 ? flags.prompt_length : length;
  speed.work = *std::move(work);
  speed.decode = plan::decode_step(speed.work, machine, speed.batch, length);
  speed.prefill = plan::prefill(speed.work, machine, speed.prompt);
  speed.weights_wall = plan::weights_wall_batch(speed.work, machine);
  speed.wall = plan::wall_batch(speed.work, machine, length);
  if (flags.target_itl > 0)
    speed.most_batch = plan::most_batch(speed.work, machine, length, flags.target_itl / 1e3);
  return ok_status();
}

}  // namespace kvasir::cli
