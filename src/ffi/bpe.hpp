// Byte-level byte-pair encoding, by the Rust `tokenizers` crate.
//
// Thread rule: immutable after creation; encode() may be called from several threads at once.
// Errors: bad_input, in the words of the vocabulary's GGUF keys; internal if the library fails.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

struct KvBpe;

namespace kvasir::ffi {

class Bpe {
 public:
  // tokens[i] has id i; an empty one cannot be reached by text. merges: "left right", best first. pre: how text is cut
  // into words, one of pre_tokenizers(). whole_words: a word that is a token as it stands is taken unmerged.
  static Result<Bpe> create(std::span<const std::string_view> tokens, std::span<const std::string_view> merges,
                            std::string_view pre, bool whole_words);

  // Names of tokenizer.ggml.pre that create() knows.
  static std::span<const std::string_view> pre_tokenizers();

  // text: valid UTF-8. Bytes for which the vocabulary has no token yield nothing.
  Result<std::vector<TokenId>> encode(std::string_view text) const;

 private:
  struct Free {
    void operator()(KvBpe* bpe) const;
  };
  explicit Bpe(KvBpe* bpe) : bpe_(bpe) {}
  std::unique_ptr<KvBpe, Free> bpe_;
};

}  // namespace kvasir::ffi
