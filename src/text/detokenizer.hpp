// Turns generated ids into text as they come, never handing out half a character.
//
// Thread rule: one thread at a time; the tokenizer must outlive it.
// Invariants: everything returned is valid UTF-8. The concatenation of all push() results and finish() equals the
// pieces' bytes, with each maximal ill-formed part replaced by one U+FFFD (Unicode 15, section 3.9, table 3-8).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::text {

class Detokenizer {
 public:
  // skip_special: control and unknown tokens yield no text.
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {
    pending_.reserve(kReservedBytes);
  }

  // The text that is complete now; empty while a character is still open. Bytes that can no longer become a character
  // come out as U+FFFD at once. REQUIRES: tokenizer.contains(id).
  std::string push(TokenId id);
  // The same, added to `out`. Allocates only if `out` has no room or the token is longer than any usual one.
  void append(TokenId id, std::string& out);

  // What is left over, as U+FFFD if a character is open; the detokenizer is as new afterwards.
  std::string finish();

  // Bytes held back: 0 to 3.
  std::size_t pending_bytes() const { return pending_.size(); }

 private:
  static constexpr std::size_t kReservedBytes = 512;  // longer than the tokens of the vocabularies in use

  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string pending_;  // a proper prefix of a well-formed character, or empty
};

}  // namespace kvasir::text
