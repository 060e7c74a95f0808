// SentencePiece's byte-pair encoding: neighbours merge into the best-scored token that they spell, again and again;
// equal scores from left to right. Characters that end as no token come out as byte tokens.
//
// Not done by the tokenizers crate: its BPE ranks pairs, one rank a pair, while scores rank results, so that two pairs
// that spell the same token must compare equal ("a"+"aa" and "aa"+"a").
//
// Thread rule: immutable after creation; any thread. The vocabulary must outlive it.
// Source: Kudo and Richardson, SentencePiece, 2018; Sennrich et al., 2016.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "text/vocabulary.hpp"

namespace kvasir::text {

class ScoreMerge {
 public:
  // Errors: bad_input if scores are missing, too few or not finite, or if a byte has neither a token nor an unknown
  // token.
  static Result<ScoreMerge> create(const Vocabulary& vocabulary, const artifact::GgufFile& file);

  // text: valid UTF-8 with U+2581 for spaces. Appends to `out`. Never yields a control or unknown token by spelling.
  void encode(std::string_view text, std::vector<TokenId>& out) const;

 private:
  ScoreMerge() = default;
  std::optional<TokenId> token(std::string_view text) const;

  const Vocabulary* vocabulary_ = nullptr;
  std::vector<float> scores_;
  std::array<TokenId, 256> byte_tokens_{};
  std::size_t longest_ = 0;  // bytes of the longest token
};

}  // namespace kvasir::text
