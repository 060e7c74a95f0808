#include "plan/runtime.hpp"

#include <fmt/format.h>

#include <string>

#include "base/units.hpp"

namespace kvasir::plan {
namespace {

constexpr std::uint64_t kMiB = 1u << 20, kGiB = 1u << 30;

PlanLine range(std::string name, std::uint64_t low, std::uint64_t high, std::string source, std::string field) {
  PlanLine line{std::move(name), high,
                fmt::format("{} to {}, the high end counted: {}", format_bytes(low), format_bytes(high), source),
                std::move(field)};
  line.low_bytes = low;
  return line;
}

}  // namespace

std::vector<PlanLine> runtime_lines(bool communicates) {
  std::vector<PlanLine> lines;
  // A process that did nothing but ask how much memory is free holds 128 to 256 MiB (InvokeAI pull request 9447, 2026);
  // one that loaded PyTorch's kernels 781 MB (PyTorch issue 34323, 2020).
  lines.push_back(range("runtime.context", 128 * kMiB, 781'000'000,
                        "CUDA context and loaded kernels (InvokeAI #9447, PyTorch #34323)", "device"));
  lines.push_back(range("runtime.graphs", kGiB, 3 * kGiB,
                        "captured graphs (\"1~3 GiB memory per GPU\", vLLM 0.6.1); none where they are not captured",
                        "device"));
  if (communicates) {
    // A send and a receive buffer of NCCL_BUFFSIZE = 4 MiB a channel; 2 to 32 channels.
    lines.push_back(range("runtime.communicator", 16 * kMiB, 256 * kMiB,
                          "2 x 4 MiB x 2 to 32 channels (NCCL user guide, NCCL_BUFFSIZE)", "device, parallel sizes"));
  }
  return lines;
}

}  // namespace kvasir::plan
