#include "server/api/held_tokens.hpp"

namespace kvasir::server::api {

bool HeldTokens::add(const ChoiceEvent& event) {
  empty_ = false;
  text_ += event.text;
  if (event.token >= 0) tokens_.push_back(event.token);
  newest_ = event;
  newest_.text = {};
  newest_.top_logprobs = {};
  return !sent_ || event.finish != engine::FinishReason::none || tokens_.size() >= interval_ ||
         event.at_ns >= sent_ns_ + kSilenceNs;
}

ChoiceEvent HeldTokens::joined() const {
  ChoiceEvent out = newest_;
  out.text = text_;
  return out;
}

void HeldTokens::clear() {
  empty_ = true;
  sent_ = true;
  sent_ns_ = newest_.at_ns;
  text_.clear();
  tokens_.clear();
}

}  // namespace kvasir::server::api
