// How much this process has asked for: the difference of two readings is what the code between them really allocated.
// Thread rule: any thread; other threads' allocations count too.
#pragma once

#include <cstdint>
#include <optional>

namespace kvasir::platform {

// Bytes of heap blocks in use plus bytes mapped outside the heap, touched or not. None where the allocator is replaced
// (sanitizers) or /proc is not there. Source: mallinfo(3), proc(5) statm.
std::optional<std::uint64_t> allocated_bytes();

}  // namespace kvasir::platform
