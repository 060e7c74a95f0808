#include "store/arena.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/check.hpp"
#include "base/units.hpp"

namespace kvasir::store {

Result<Arena> Arena::reserve(std::uint64_t bytes, ArenaOptions options) {
  Arena arena;
  KV_ASSIGN(arena.range_, platform::AddressRange::reserve(bytes));
  arena.size_ = bytes;
  arena.headroom_ = std::move(options.headroom);
  arena.huge_pages_ = options.huge_pages && arena.range_.advise_huge_pages();
  return arena;
}

Status Arena::populate(std::uint64_t begin, std::uint64_t end) {
  KV_CHECK(begin <= end && end <= size_, "populate() stays inside the arena");
  if (begin == end) return ok_status();
  const std::uint64_t page = platform::page_bytes();
  const std::uint64_t needed = round_up(end, page) - begin / page * page - range_.resident(begin, end - begin);
  KV_ASSIGN(const platform::Headroom headroom, headroom_());
  if (needed > headroom.bytes())
    return Error{ErrorCode::does_not_fit,
                 fmt::format("the KV cache needs {} ({} bytes) more memory and {} ({} bytes) are available{}",
                             format_bytes(needed), needed, format_bytes(headroom.bytes()), headroom.bytes(),
                             headroom.bytes() < headroom.system_available ? " within the cgroup's limit" : "")};
  return range_.populate(begin, end - begin);
}

}  // namespace kvasir::store
