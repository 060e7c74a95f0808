#include "plan/devices.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <vector>

#include "base/suggestion.hpp"

namespace kvasir::plan {
namespace {

constexpr std::size_t kMaxNameBytes = 100;   // longer ones are no device's, and suggestions cost the product of lengths
constexpr auto kGpu = DeviceKind::gpu;
constexpr auto kOther = DeviceKind::accelerator;
constexpr auto kCpu = DeviceKind::cpu;

constexpr std::uint64_t gb(std::uint64_t n) { return n * 1'000'000'000; }    // where nobody was seen to say more
constexpr std::uint64_t mib(std::uint64_t n) { return n << 20; }             // as the driver offers it to programs
constexpr double gbs(double n) { return n * 1e9; }      // GB/s
constexpr double tera(double n) { return n * 1e12; }    // operations/s
// GB/s of a CPU's memory channels of 8 bytes.
constexpr double channels(int count, double mega_transfers) { return count * mega_transfers * 1e6 * 8; }
// Operations/s at base clock.
constexpr double cores(int count, double gigahertz, int operations_a_cycle) { return count * gigahertz * 1e9 * operations_a_cycle; }

// Columns: name, title, kind, memory, bandwidth, f16, int8, f32, link, source.
constexpr std::array kDevices = {
    // NVIDIA data centre.
    Device{"t4", "NVIDIA T4", kGpu, mib(14910), gbs(320), tera(65), tera(130), tera(8.1), gbs(32),
           "NVIDIA T4 datasheet, 2019; bandwidth: T4 product brief, 2020"},
    Device{"v100-16gb", "NVIDIA V100 16GB SXM2", kGpu, mib(16144), gbs(900), tera(125), 0, tera(15.7), gbs(300), "NVIDIA V100 datasheet, 2020"},
    Device{"v100-32gb", "NVIDIA V100 32GB SXM2", kGpu, mib(32480), gbs(900), tera(125), 0, tera(15.7), gbs(300), "NVIDIA V100 datasheet, 2020"},
    Device{"a10", "NVIDIA A10", kGpu, mib(22515), gbs(600), tera(125), tera(250), tera(31.2), gbs(64), "NVIDIA A10 datasheet, 2021"},
    Device{"a10g", "NVIDIA A10G", kGpu, mib(22515), gbs(600), tera(70), tera(140), 0, gbs(64), "NVIDIA A10G datasheet as AWS publishes it, 2021"},
    Device{"l4", "NVIDIA L4", kGpu, mib(22478), gbs(300), tera(121), tera(242.5), tera(30.3), gbs(64), "NVIDIA L4 datasheet, 2023"},
    Device{"l40s", "NVIDIA L40S", kGpu, mib(45373), gbs(864), tera(362.05), tera(733), tera(91.6), gbs(64), "NVIDIA L40S datasheet, 2023"},
    Device{"a100-40gb", "NVIDIA A100 40GB SXM", kGpu, mib(40326), gbs(1555), tera(312), tera(624), tera(19.5), gbs(600), "NVIDIA A100 datasheet, 2020"},
    Device{"a100-40gb-pcie", "NVIDIA A100 40GB PCIe", kGpu, mib(40326), gbs(1555), tera(312), tera(624), tera(19.5), gbs(64),
           "NVIDIA A100 datasheet, 2020"},
    Device{"a100-80gb", "NVIDIA A100 80GB SXM", kGpu, mib(81038), gbs(2039), tera(312), tera(624), tera(19.5), gbs(600), "NVIDIA A100 datasheet, 2022"},
    Device{"a100-80gb-pcie", "NVIDIA A100 80GB PCIe", kGpu, mib(81038), gbs(1935), tera(312), tera(624), tera(19.5), gbs(64),
           "NVIDIA A100 datasheet, 2022"},
    Device{"h100", "NVIDIA H100 SXM", kGpu, mib(80994), gbs(3350), tera(989.5), tera(1979), tera(67), gbs(900), "NVIDIA H100 datasheet, 2023"},
    Device{"h100-pcie", "NVIDIA H100 PCIe", kGpu, mib(80994), gbs(2000), tera(756.5), tera(1513), tera(51), gbs(128), "NVIDIA H100 datasheet, 2023"},
    Device{"h200", "NVIDIA H200 SXM", kGpu, mib(143062), gbs(4800), tera(989.5), tera(1979), tera(67), gbs(900), "NVIDIA H200 datasheet, 2024"},
    Device{"b200", "NVIDIA B200 (an eighth of a DGX B200)", kGpu, mib(182632), gbs(8000), tera(2250), tera(4500), 0, gbs(1800),
           "NVIDIA DGX B200 and HGX datasheets, 2024"},
    // NVIDIA GeForce: f16 with sums in f32, half the rate of sums in f16.
    Device{"rtx-3090", "NVIDIA GeForce RTX 3090", kGpu, mib(24240), gbs(936), tera(71), tera(284), tera(35.6), gbs(64), "NVIDIA GA102 whitepaper, 2020"},
    Device{"rtx-4090", "NVIDIA GeForce RTX 4090", kGpu, mib(24064), gbs(1008), tera(165.2), tera(660.6), tera(82.6), gbs(64),
           "NVIDIA Ada whitepaper, 2022"},
    Device{"rtx-5090", "NVIDIA GeForce RTX 5090", kGpu, mib(32110), gbs(1792), tera(209.5), tera(838), tera(104.8), gbs(128),
           "NVIDIA RTX Blackwell whitepaper, 2025"},
    // AMD Instinct.
    Device{"mi210", "AMD Instinct MI210", kOther, mib(65520), gbs(1638.4), tera(181), tera(181), tera(22.6), 0, "AMD Instinct MI210 datasheet, 2022"},
    Device{"mi250x", "AMD Instinct MI250X (both dies; software sees two devices of 64 GB)", kOther, mib(131040), gbs(3276.8), tera(383), tera(383), tera(47.9), 0,
           "AMD Instinct MI250X datasheet, 2021"},
    Device{"mi300x", "AMD Instinct MI300X", kOther, mib(196580), gbs(5325), tera(1307.4), tera(2614.9), tera(163.4), gbs(896),
           "AMD Instinct MI300X datasheet, 2023"},
    Device{"mi325x", "AMD Instinct MI325X", kOther, mib(262100), gbs(6000), tera(1307.4), tera(2614.9), tera(163.4), gbs(896),
           "AMD Instinct MI325X datasheet, 2024"},
    // Intel Gaudi: matrix engines on bf16.
    Device{"gaudi-2", "Intel Gaudi 2", kOther, gb(96), gbs(2450), tera(432), 0, 0, gbs(600), "Intel Gaudi 3 white paper (table of generations), 2024"},
    Device{"gaudi-3", "Intel Gaudi 3", kOther, gb(128), gbs(3670), tera(1835), 0, 0, gbs(1200), "Intel at Hot Chips, 2024; white paper, 2024"},
    // Apple: one memory for CPU and GPU, its largest size; Apple states no peak of the matrix kind.
    Device{"m1-max", "Apple M1 Max", kOther, gb(64), gbs(400), 0, 0, 0, 0, "Apple newsroom, 2021"},
    Device{"m1-ultra", "Apple M1 Ultra", kOther, gb(128), gbs(800), 0, 0, 0, 0, "Apple newsroom, 2022"},
    Device{"m2-max", "Apple M2 Max", kOther, gb(96), gbs(400), 0, 0, 0, 0, "Apple newsroom, 2023"},
    Device{"m2-ultra", "Apple M2 Ultra", kOther, gb(192), gbs(800), 0, 0, 0, 0, "Apple newsroom, 2023"},
    Device{"m3-max", "Apple M3 Max (40-core GPU)", kOther, gb(128), gbs(400), 0, 0, 0, 0, "Apple MacBook Pro technical specifications, 2023"},
    Device{"m3-ultra", "Apple M3 Ultra", kOther, gb(512), gbs(819), 0, 0, 0, 0, "Apple Mac Studio technical specifications, 2025"},
    Device{"m4-max", "Apple M4 Max (40-core GPU)", kOther, gb(128), gbs(546), 0, 0, 0, 0, "Apple MacBook Pro technical specifications, 2024"},
    // CPUs, one socket. Operations a cycle and core: f32 of two fused multiply-adds of 256 bits 32, of 512 bits 64; AMX
    // bf16 1,024, int8 2,048.
    Device{"epyc-7763", "AMD EPYC 7763", kCpu, 0, channels(8, 3200), 0, 0, cores(64, 2.45, 32), 0,
           "AMD product page, 2021: 8 channels DDR4-3200; 64 cores of 2.45 GHz, f32 derived"},
    Device{"epyc-9654", "AMD EPYC 9654", kCpu, 0, channels(12, 4800), 0, 0, cores(96, 2.4, 32), 0,
           "AMD product page, 2022: 12 channels DDR5-4800; 96 cores of 2.4 GHz, f32 derived"},
    Device{"epyc-9755", "AMD EPYC 9755", kCpu, 0, channels(12, 6000), 0, 0, cores(128, 2.7, 64), 0,
           "AMD EPYC 9005 datasheet, 2024: 12 channels DDR5-6000; 128 cores of 2.7 GHz, f32 derived"},
    Device{"xeon-8380", "Intel Xeon Platinum 8380", kCpu, 0, channels(8, 3200), 0, 0, cores(40, 2.3, 64), 0,
           "Intel ARK, 2021: 8 channels DDR4-3200; 40 cores of 2.3 GHz, f32 derived"},
    Device{"xeon-8480plus", "Intel Xeon Platinum 8480+", kCpu, 0, channels(8, 4800), cores(56, 2.0, 1024), cores(56, 2.0, 2048), cores(56, 2.0, 64), 0,
           "Intel ARK, 2023: 8 channels DDR5-4800; 56 cores of 2.0 GHz with AMX, peaks derived"},
    Device{"xeon-8592plus", "Intel Xeon Platinum 8592+", kCpu, 0, channels(8, 5600), cores(64, 1.9, 1024), cores(64, 1.9, 2048), cores(64, 1.9, 64), 0,
           "Intel ARK, 2023: 8 channels DDR5-5600; 64 cores of 1.9 GHz with AMX, peaks derived"},
    Device{"xeon-6980p", "Intel Xeon 6980P (DDR5; MRDIMM 8800: 844.8 GB/s)", kCpu, 0, channels(12, 6400), cores(128, 2.0, 1024), cores(128, 2.0, 2048), cores(128, 2.0, 64), 0,
           "Intel ARK, 2024: 12 channels DDR5-6400; 128 cores of 2.0 GHz with AMX, peaks derived"},
    Device{"graviton3", "AWS Graviton3", kCpu, 0, channels(8, 4800), 0, 0, 0, 0, "AWS, 2022: 8 channels DDR5-4800"},
    Device{"graviton4", "AWS Graviton4", kCpu, 0, channels(12, 5600), 0, 0, 0, 0, "AWS, 2024: 12 channels DDR5-5600"},
    Device{"ryzen-7950x", "AMD Ryzen 9 7950X", kCpu, 0, channels(2, 5200), 0, 0, cores(16, 4.5, 32), 0,
           "AMD product page, 2022: 2 channels DDR5-5200; 16 cores of 4.5 GHz, f32 derived"},
    Device{"i9-14900k", "Intel Core i9-14900K", kCpu, 0, channels(2, 5600), 0, 0, 0, 0, "Intel ARK, 2023: 89.6 GB/s, 2 channels DDR5-5600"},
};

Error unknown(std::string_view name) {
  std::vector<std::string> names;
  for (const Device& device : kDevices) names.emplace_back(device.name);
  std::string nearest;
  for (const std::string& near : nearest_few(name.substr(0, kMaxNameBytes), names, 3))
    nearest += fmt::format("{}'{}'", nearest.empty() ? "" : ", ", near);
  return Error{ErrorCode::bad_input, fmt::format("device '{}' is not known; the nearest of {} that are: {}",
                                                 name.substr(0, kMaxNameBytes), names.size(), nearest)};
}

}  // namespace

std::string_view to_string(DeviceKind kind) {
  return kind == DeviceKind::gpu ? "gpu" : kind == DeviceKind::accelerator ? "accelerator" : "cpu";
}

std::span<const Device> devices() { return kDevices; }

Result<DeviceChoice> find_device(std::string_view text) {
  const std::size_t star = text.find('*');
  const std::string_view name = text.substr(0, star);
  DeviceChoice out;
  if (star != std::string_view::npos) {
    const std::string_view count = text.substr(star + 1);
    const auto [rest, status] = std::from_chars(count.data(), count.data() + count.size(), out.count);
    if (status != std::errc{} || rest != count.data() + count.size() || out.count < 1 || out.count > kMaxDevices)
      return Error{ErrorCode::bad_input,
                   fmt::format("'{}' devices in '{}'; valid: 1 to {}, as a100-80gb*8", count.substr(0, kMaxNameBytes),
                               text.substr(0, kMaxNameBytes), kMaxDevices)};
  }
  std::string wanted = name.size() > kMaxNameBytes ? std::string() : plain_name(name);
  if (wanted.ends_with("sxm")) wanted.resize(wanted.size() - 3);   // what a name without "-pcie" means
  for (const Device& device : kDevices) {
    if (plain_name(device.name) != wanted) continue;
    out.device = device;
    return out;
  }
  return unknown(name);
}

}  // namespace kvasir::plan
