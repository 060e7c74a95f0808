// What `kvasir plan` answers about the machine: which, how fast at most, and what each of several devices holds.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/plan_device_flags.hpp"
#include "plan/devices.hpp"
#include "report/json.hpp"

namespace kvasir::cli {

// The bound of a layout: of one batch that passes all stages. Each replica has as many batches under way as stages, so
// that no stage waits.
struct Speed {
  plan::Machine machine;
  plan::StepWork work;
  std::uint64_t batch = 0;   // sequences of a step
  std::uint64_t length = 0;  // tokens of a sequence that a step looks back on
  std::uint64_t prompt = 0;  // tokens that prefill is timed for
  plan::StepTime decode, prefill;
  std::uint64_t streams = 0;  // sequences of the whole layout
  std::optional<std::uint64_t> weights_wall, wall;
  std::optional<std::uint64_t> most_batch;  // under the target
};

struct PlannedDevice {
  std::optional<plan::DeviceChoice> choice;
  std::uint64_t memory = 0;  // bytes of one device; 0: not asked
  plan::ParallelLayout layout;
  std::optional<plan::ParallelPlan> parallel;
  std::optional<Speed> speed;
  std::string unlimited;  // why there is no speed though it was asked; empty: there is, or nobody asked

  // Against which the whole model on one device may be held; 0: none, or there are several.
  std::uint64_t one_memory() const { return parallel ? 0 : memory; }
};

// Device, memory and layout; and into `input` the lines and branches that the flags ask for. memory: --memory, 0 if not
// given. Errors: usage for options that contradict each other; find_device's, check_layout's.
Result<PlannedDevice> choose_device(const PlanDeviceFlags& flags, std::uint64_t memory, plan::PlanInput& input);

// Adds the parallel plan and the speed. length: tokens of a sequence that a step looks back on, and of the prompt if nothing
// else was said. REQUIRES: plan is of input.
Status plan_device(const PlanDeviceFlags& flags, const plan::PlanInput& input, const plan::CapacityPlan& plan,
                   std::uint64_t length, PlannedDevice& device);

// A row of --list-devices.
report::Json device_json(const plan::Device& device);
// Adds the keys device, roofline, parallel and devices: null where not asked.
void add_device_json(const PlanDeviceFlags& flags, const PlannedDevice& device, report::Json& json);
void print_device(const PlanDeviceFlags& flags, const PlannedDevice& device, std::ostream& out);

}  // namespace kvasir::cli
