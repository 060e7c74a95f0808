// How many files and sockets this process may hold, and how many it holds.
// Thread rule: any thread; the limit belongs to the process.
// Source: getrlimit(2), proc(5).
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"

namespace kvasir::platform {

struct DescriptorLimit {
  std::uint64_t soft = 0;   // in force
  std::uint64_t hard = 0;   // how far the process may raise it itself
};

// Errors: io.
Result<DescriptorLimit> descriptor_limit();
// Errors: io (above the hard limit).
Status set_descriptor_limit(std::uint64_t soft);

// Open descriptors now. None where /proc is not there.
std::optional<std::uint64_t> open_descriptors();

}  // namespace kvasir::platform
