#include "text/special_tokens.hpp"

#include <algorithm>
#include <set>

#include "base/check.hpp"

namespace kvasir::text {

std::int32_t SpecialTokens::child_of(std::int32_t node, char byte) const {
  std::int32_t child = nodes_[static_cast<std::size_t>(node)].child;
  while (child >= 0 && nodes_[static_cast<std::size_t>(child)].byte != byte) {
    child = nodes_[static_cast<std::size_t>(child)].sibling;
  }
  return child;
}

void SpecialTokens::add(std::string_view text, TokenId id) {
  KV_CHECK(!text.empty(), "a token with a text");
  std::int32_t node = 0;
  for (const char byte : text) {
    std::int32_t child = child_of(node, byte);
    if (child < 0) {
      child = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({byte, -1, nodes_[static_cast<std::size_t>(node)].child, -1});
      nodes_[static_cast<std::size_t>(node)].child = child;
    }
    node = child;
  }
  nodes_[static_cast<std::size_t>(node)].id = id;
}

TokenId SpecialTokens::token_at(std::string_view text, std::size_t begin, std::size_t length) const {
  std::int32_t node = 0;
  for (const char byte : text.substr(begin, length)) {
    if ((node = child_of(node, byte)) < 0) return -1;
  }
  return nodes_[static_cast<std::size_t>(node)].id;
}

std::vector<SpecialTokens::Match> SpecialTokens::find(std::string_view text,
                                                      const std::function<bool(const Match&)>& allowed) const {
  // Where tokens begin, the longest at each place, and all lengths that occur.
  struct Start {
    std::size_t begin, longest;
  };
  std::vector<Start> starts;
  std::set<std::size_t, std::greater<>> lengths;
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    std::size_t longest = 0;
    std::int32_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
      if ((node = child_of(node, text[at])) < 0) break;
      const TokenId id = nodes_[static_cast<std::size_t>(node)].id;
      if (id >= 0 && allowed({begin, at + 1, id})) {
        longest = at + 1 - begin;
        lengths.insert(longest);
      }
    }
    if (longest > 0) starts.push_back({begin, longest});
  }
  std::vector<Match> taken;
  std::vector<bool> covered(starts.empty() ? 0 : text.size());
  for (const std::size_t length : lengths) {
    for (const Start& start : starts) {
      const std::size_t end = start.begin + length;
      // What is taken already is at least as long, so it covers one of the two ends if it overlaps.
      if (length > start.longest || covered[start.begin] || covered[end - 1]) continue;
      const TokenId id = token_at(text, start.begin, length);
      if (id < 0 || !allowed({start.begin, end, id})) continue;
      taken.push_back({start.begin, end, id});
      std::fill(covered.begin() + static_cast<std::ptrdiff_t>(start.begin),
                covered.begin() + static_cast<std::ptrdiff_t>(end), true);
    }
  }
  std::sort(taken.begin(), taken.end(), [](const Match& a, const Match& b) { return a.begin < b.begin; });
  return taken;
}

}  // namespace kvasir::text
