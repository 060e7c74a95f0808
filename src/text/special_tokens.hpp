// Finds tokens that are taken whole, before the rest of a text is cut into words: control tokens and user-defined ones.
//
// The order is llama.cpp's: longer tokens first over the whole text, each from left to right, never overlapping what is
// already taken. Time is linear in the text unless it is made of such tokens.
//
// Thread rule: immutable after creation; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace kvasir::text {

class SpecialTokens {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;  // bytes of the text
    TokenId id = 0;
  };

  // REQUIRES: text is not empty.
  void add(std::string_view text, TokenId id);

  // Ascending. `allowed(match)` says whether a token may be taken at a place.
  std::vector<Match> find(std::string_view text, const std::function<bool(const Match&)>& allowed) const;

 private:
  // A trie: children of a node are a linked list, as almost all nodes have one child.
  struct Node {
    char byte = 0;
    std::int32_t child = -1, sibling = -1;
    TokenId id = -1;
  };
  std::int32_t child_of(std::int32_t node, char byte) const;
  TokenId token_at(std::string_view text, std::size_t begin, std::size_t length) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
};

}  // namespace kvasir::text
