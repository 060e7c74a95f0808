#include "cache/free_set.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"

namespace kvasir::cache {
namespace {

constexpr std::uint32_t words_for(std::uint32_t bits) { return bits / 64 + (bits % 64 != 0 ? 1 : 0); }

}  // namespace

FreeSet::FreeSet(std::uint32_t size, bool full) : size_(size) {
  KV_CHECK(size >= 1, "a free set has at least one possible member");
  words_.reserve(bytes(size) / sizeof(std::uint64_t));
  for (std::uint32_t bits = size;; bits = words_for(bits)) {
    start_[levels_++] = static_cast<std::uint32_t>(words_.size());
    for (std::uint32_t first = 0; first < bits; first += 64) {
      const std::uint32_t count = bits - first;
      words_.push_back(count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1);
      if (count <= 64) break;  // before `first` could wrap
    }
    if (bits <= 64) break;
  }
  if (!full) std::ranges::fill(words_, 0);
}

std::uint64_t FreeSet::bytes(std::uint32_t size) {
  std::uint64_t words = 0;
  for (std::uint32_t bits = size;; bits = words_for(bits)) {
    words += words_for(bits);
    if (bits <= 64) return words * sizeof(std::uint64_t);
  }
}

void FreeSet::insert(std::uint32_t member) {
  KV_CHECK(member < size_ && !contains(member), "inserted a member twice");
  for (std::uint32_t level = 0; level < levels_; ++level, member /= 64) {
    std::uint64_t& word = words_[start_[level] + member / 64];
    const bool was_empty = word == 0;
    word |= std::uint64_t{1} << (member % 64);
    if (!was_empty) return;  // the levels above know already
  }
}

void FreeSet::erase(std::uint32_t member) {
  KV_CHECK(member < size_ && contains(member), "erased something that is not a member");
  for (std::uint32_t level = 0; level < levels_; ++level, member /= 64) {
    std::uint64_t& word = words_[start_[level] + member / 64];
    word &= ~(std::uint64_t{1} << (member % 64));
    if (word != 0) return;
  }
}

std::uint32_t FreeSet::descend(std::uint32_t level, std::uint32_t index) const {
  for (; level > 0; --level)
    index = index * 64 + static_cast<std::uint32_t>(std::countr_zero(words_[start_[level - 1] + index]));
  return index;
}

std::uint32_t FreeSet::lowest() const {
  KV_CHECK(!empty(), "lowest member of an empty set");
  return descend(levels_ - 1, static_cast<std::uint32_t>(std::countr_zero(words_.back())));
}

std::uint32_t FreeSet::words_of(std::uint32_t level) const {
  const std::uint32_t end = level + 1 < levels_ ? start_[level + 1] : static_cast<std::uint32_t>(words_.size());
  return end - start_[level];
}

// Up until a word has a bit at or after the place where the search stands, then down along the lowest bits.
std::optional<std::uint32_t> FreeSet::lowest_from(std::uint32_t first) const {
  for (std::uint32_t level = 0; level < levels_ && first / 64 < words_of(level); ++level, first = first / 64 + 1) {
    const std::uint64_t word = words_[start_[level] + first / 64] & (~std::uint64_t{0} << (first % 64));
    if (word != 0) return descend(level, first / 64 * 64 + static_cast<std::uint32_t>(std::countr_zero(word)));
  }
  return std::nullopt;
}

void FreeSet::check_invariants() const {
  for (std::uint32_t level = 1; level < levels_; ++level) {
    const std::uint32_t below = start_[level] - start_[level - 1];
    for (std::uint32_t i = 0; i < below; ++i) {
      const bool marked = (words_[start_[level] + i / 64] >> (i % 64)) & 1u;
      KV_CHECK(marked == (words_[start_[level - 1] + i] != 0), "free set: a level disagrees with the one below");
    }
  }
}

}  // namespace kvasir::cache
