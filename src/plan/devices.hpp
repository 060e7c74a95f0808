// Machines that models are planned for: memory, bandwidth, peak, and who says so.
// Thread rule: pure functions over a constant table; any thread.
//
// A number stands here if its vendor states it, or if it follows from what the vendor states (a CPU's: channels x
// transfers x 8 bytes; cores x base clock x operations a cycle); else it is 0, unknown. Peaks are dense: half of what a
// datasheet gives "with sparsity". Memory of NVIDIA's and AMD's is what the driver offers to programs, the lowest total that
// PyTorch was seen to report: a datasheet's GB is neither 10^9 nor 2^30 bytes (an A100 of "80 GB" offers 84.97e9, a T4 of
// "16 GB" 15.63e9); elsewhere a GB is 10^9 bytes. As of November 2026; a source is the document in which its vendor states
// the number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace kvasir::plan {

// gpu: of NVIDIA, whose runtime takes memory in known ranges (runtime.hpp); accelerator: any other, whose does in unknown ones.
enum class DeviceKind : std::uint8_t { gpu, accelerator, cpu };
std::string_view to_string(DeviceKind kind);

inline constexpr std::uint32_t kMaxDevices = 4096;

struct Device {
  std::string_view name = {};   // "a100-80gb"
  std::string_view title = {};  // "NVIDIA A100 80GB SXM"
  DeviceKind kind = DeviceKind::gpu;
  std::uint64_t memory = 0;  // bytes; 0: not the device's to say (a CPU's)
  double bandwidth = 0;      // of its memory, bytes/s
  double peak_f16 = 0;       // operations/s on f16 or bf16, summed in f32 where the vendor states that apart
  double peak_int8 = 0, peak_f32 = 0;
  double link = 0;  // to other devices, bytes/s, both directions together
  std::string_view source = {};

  // Of the matrix work of a model with 16-bit values: f16, or f32 where there is no faster; 0: unknown.
  double peak() const { return peak_f16 > 0 ? peak_f16 : peak_f32; }
};

std::span<const Device> devices();

struct DeviceChoice {
  Device device;
  std::uint32_t count = 1;
};

// "a100-80gb", or "a100-80gb*8" for eight. Case and punctuation do not count.
// Errors: bad_input naming the three nearest names; a count that is not 1 to kMaxDevices.
Result<DeviceChoice> find_device(std::string_view text);

}  // namespace kvasir::plan
