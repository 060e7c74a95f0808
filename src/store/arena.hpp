// The memory of the KV store: address space reserved once, populated before it is needed.
// Thread rule: one owner; the bytes are shared with kernels by the owner's rule.
// Invariant: what was populated is resident and keeps its content; the rest costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/result.hpp"
#include "platform/memory.hpp"

namespace kvasir::store {

struct ArenaOptions {
  bool huge_pages = true;
  // Where "how much is there" is read: the system, or a test's own answer.
  std::function<Result<platform::Headroom>()> headroom = [] { return platform::read_headroom(); };
};

class Arena {
 public:
  // Errors: does_not_fit if the address space is refused.
  static Result<Arena> reserve(std::uint64_t bytes, ArenaOptions options = {});

  // Makes [begin, end) resident. Errors: does_not_fit with both numbers if the system or the cgroup has not that much
  // left; nothing has changed then. REQUIRES: begin <= end <= size().
  Status populate(std::uint64_t begin, std::uint64_t end);

  std::byte* data() const { return range_.data(); }
  std::uint64_t size() const { return size_; }
  bool huge_pages() const { return huge_pages_; }
  std::uint64_t resident() const { return range_.resident(0, size_); }

 private:
  platform::AddressRange range_;
  std::function<Result<platform::Headroom>()> headroom_;
  std::uint64_t size_ = 0;
  bool huge_pages_ = false;
};

}  // namespace kvasir::store
