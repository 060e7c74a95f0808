// The arena's superpages that no group has sliced: what groups of several block sizes share.
// Thread rule: one owner. Allocates at construction only.
//
// Invariant: free + taken = total. The lowest free one is taken: the choice depends on the set of free ones alone, so a
// replay is exact, and free memory gathers at the high end.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "cache/free_set.hpp"

namespace kvasir::cache {

class SuperpagePool {
 public:
  // All free. superpages: at least 1.
  explicit SuperpagePool(std::uint32_t superpages) : free_set_(superpages), total_(superpages), free_(superpages) {}

  // REQUIRES: free() > 0.
  std::uint32_t take() {
    KV_CHECK(free_ > 0, "take() needs a free superpage: claim before allocating");
    const std::uint32_t superpage = free_set_.lowest();
    free_set_.erase(superpage);
    --free_;
    return superpage;
  }
  // REQUIRES: taken.
  void give_back(std::uint32_t superpage) {
    free_set_.insert(superpage);
    ++free_;
  }

  std::uint32_t free() const { return free_; }
  std::uint32_t total() const { return total_; }
  bool is_free(std::uint32_t superpage) const { return free_set_.contains(superpage); }

 private:
  FreeSet free_set_;
  std::uint32_t total_, free_;
};

}  // namespace kvasir::cache
