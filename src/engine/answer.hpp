// What the client sees of one request while it runs: tokens become text; stop strings, stop tokens and end-of-text
// tokens end it, none of them before min_tokens tokens are there.
// Thread rule: one owner. Allocates at construction; push() only where a token's text outgrows what was reserved.
// Invariant: the texts of all steps joined are the answer: what a request that is not streamed returns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "engine/request.hpp"
#include "engine/stop_matcher.hpp"
#include "text/detokenizer.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::engine {

class Answer {
 public:
  // tokenizer: null for token ids only. It outlives the answer.
  Answer(const GenerateRequest& request, std::uint32_t max_tokens, const text::Tokenizer* tokenizer);

  struct Push {
    FinishReason finish = FinishReason::none;
    std::int32_t stop_index = -1;
    TokenId stop_token = -1;
  };
  // Takes the next token; text() is what became final with it. REQUIRES: not finished.
  Push push(TokenId token);

  std::string_view text() const { return text_; }   // until the next push()
  std::uint32_t tokens() const { return tokens_; }
  std::uint32_t max_tokens() const { return max_tokens_; }

 private:
  bool ends_text(TokenId token) const;
  bool is_stop(TokenId token) const;
  // The end: what was held back becomes text, and may complete a stop string.
  void close(Push& result);

  const text::Tokenizer* tokenizer_;
  std::optional<text::Detokenizer> detokenizer_;   // none without a tokenizer
  StopMatcher stops_;
  std::string text_, piece_;   // of the step; what the last token added
  std::vector<TokenId> stop_tokens_;   // ascending
  std::uint32_t tokens_ = 0, min_tokens_, max_tokens_;
  bool ignore_eos_, include_stop_;
};

}  // namespace kvasir::engine
