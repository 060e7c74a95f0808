// What the tokens of one choice bring a stream until a chunk takes it away, and when that is: at once until a chunk has
// gone out, then with every `interval`-th token, and at once with the choice's last event and after a silence.
//
// A silence ends the waiting because tokens that come slowly should not come late as well. It needs no timer: every
// answer under way gets a token with every step, so what is held waits for interval - 1 steps at most, and no longer than
// to the end of the first step that ends kSilenceNs after the last chunk.
//
// Thread rule: one owner.
// Invariants: joined over all chunks, text and token ids are those of the events, in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "server/api/choice_event.hpp"

namespace kvasir::server::api {

class HeldTokens {
 public:
  static constexpr std::uint64_t kSilenceNs = 1'000'000'000;

  // interval: tokens of a chunk, at least 1.
  explicit HeldTokens(std::uint32_t interval) : interval_(interval) {}

  // Text that comes before the first token's: an echo.
  void begin_with(std::string text) { text_ = std::move(text); }
  // True if what is held should go out now.
  bool add(const ChoiceEvent& event);

  // Nothing came since the last chunk.
  bool empty() const { return empty_; }
  // Tokens since the last chunk.
  const std::vector<TokenId>& tokens() const { return tokens_; }
  // The newest event with the text of all that are held: as if one event had brought everything. Without alternatives.
  // Its text lives until the next call, its stop text as long as the newest event's.
  ChoiceEvent joined() const;
  // A chunk took what was held.
  void clear();

 private:
  std::uint32_t interval_;
  bool empty_ = true;
  bool sent_ = false;          // a chunk has gone out
  std::uint64_t sent_ns_ = 0;  // when its newest token was there
  std::string text_;
  std::vector<TokenId> tokens_;
  ChoiceEvent newest_;
};

}  // namespace kvasir::server::api
