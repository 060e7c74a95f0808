// Strong ids: an integer with a kind, so that a block can never be passed where a request is meant. Value types.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace kvasir {

template <class Tag, class Rep>
struct StrongId {
  using rep = Rep;
  Rep value = std::numeric_limits<Rep>::max();   // the maximum means "none"

  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  constexpr bool valid() const { return value != std::numeric_limits<Rep>::max(); }
  constexpr auto operator<=>(const StrongId&) const = default;
};

struct RequestTag;
struct SequenceTag;
using RequestId = StrongId<RequestTag, std::uint64_t>;    // one client request
using SequenceId = StrongId<SequenceTag, std::uint64_t>;  // one chain of tokens in the cache

// A block of one cache group: its index in that group's pool. int32 because kernels' page tables are CSR int32.
using BlockId = std::int32_t;
inline constexpr BlockId kNoBlock = -1;

// A vocabulary entry. int32 as everywhere in the field.
using TokenId = std::int32_t;

}  // namespace kvasir

template <class Tag, class Rep>
struct std::hash<kvasir::StrongId<Tag, Rep>> {
  std::size_t operator()(const kvasir::StrongId<Tag, Rep>& id) const noexcept { return std::hash<Rep>{}(id.value); }
};
