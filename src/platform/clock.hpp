// The only clock: time that never goes back. Layers that must be replayable get it as an argument instead.
// Thread rule: any thread.
#pragma once

#include <cstdint>

namespace kvasir::platform {

// Nanoseconds since some fixed moment of this machine's run.
std::uint64_t monotonic_ns();

inline double seconds_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) * 1e-9;
}

}  // namespace kvasir::platform
