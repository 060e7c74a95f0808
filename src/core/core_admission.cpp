// What a request asks of the cache, what it can begin with, and how it goes on when its context is full.
#include <algorithm>

#include "base/check.hpp"
#include "cache/footprint.hpp"
#include "core/core.hpp"

namespace kvasir::core {
namespace {

bool same_prompt(const Request& a, const Request& b) {
  return std::ranges::equal(std::span(a.tokens).first(a.prompt_tokens), std::span(b.tokens).first(b.prompt_tokens));
}

}  // namespace

// Rows that it may hold at one time.
std::uint64_t Core::bound_rows(std::uint64_t prompt, std::uint64_t max_new, std::uint64_t dropped, std::uint32_t beams) const {
  const std::uint64_t all = cache::rows_bound(prompt, max_new) - dropped;
  return context_keep_ && beams == 1 && prompt <= cache_.max_sequence_rows() ? std::min(all, cache_.max_sequence_rows()) : all;
}

std::uint64_t Core::bound_rows(const Request& request) const {
  return bound_rows(request.prompt_tokens, request.max_new_tokens, request.dropped, request.beams);
}

// Tokens after what it is admitted with, of which the last needs no row.
std::uint64_t Core::answer_bound(const Request& request) const {
  return request.max_new_tokens == 0 ? 0 : bound_rows(request) - request.prefill + 1;
}

cache::Demand Core::demand_of(const Request& request) const {
  return {.rows = bound_rows(request), .prompt_tokens = request.prefill, .sequences = request.beams};
}

// What may be admitted, as far down the queue as there could be places. Who could share a prompt that is being computed, or
// will be in this step, waits for it and stands in nobody's way.
void Core::view_queue() {
  queued_views_.clear();
  awaiting_prompt_ = 0;
  const std::size_t most = limits_.max_num_seqs + std::size_t{1};
  for (const RequestId id : queued_) {
    if (queued_views_.size() == most) return;
    const Request& r = at(id);
    const Sharing sharing = sharing_of(r);
    if (sharing.waits) {
      ++awaiting_prompt_;
      continue;
    }
    queued_views_.push_back({.id = id,
                             .bound_rows = bound_rows(r),
                             .prompt_tokens = r.prefill,
                             .wants_logits = r.max_new_tokens > 0,
                             .sequences = r.beams,
                             .shared = sharing.rows > 0 ? cache_.sharing(sharing.from, sharing.rows) : cache::SharedRows()});
  }
}

// All rows of the prompt but the last: that one's logits are the request's own first token.
Core::Sharing Core::sharing_of(const Request& request) const {
  Sharing sharing;
  if (request.family == 0 || request.prompt_tokens < 2) return sharing;
  const std::uint32_t rows = request.prompt_tokens - 1;
  for (const RequestId id : running_) {
    const Request& other = *find(id);
    if (other.family != request.family || !same_prompt(other, request)) continue;
    if (other.computed >= rows && cache_.can_share(other.sequence, rows)) return {.from = other.sequence, .rows = rows};
    sharing.waits = sharing.waits || other.computed < rows;
  }
  for (const sched::QueuedRequest& before : queued_views_) {
    const Request& other = *find(before.id);
    if (other.id == request.id) break;
    sharing.waits = sharing.waits || (other.family == request.family && before.shared.rows == 0 && same_prompt(other, request));
  }
  return sharing;
}

// No key is turned again: what is kept is computed anew, as a prompt of these tokens would be.
void Core::shift_context(Request& request) {
  const auto known = static_cast<std::uint32_t>(request.tokens.size());
  const std::uint32_t keep = std::min(*context_keep_, known - 2), gone = (known - keep) / 2;
  const auto first = request.tokens.begin() + keep;
  request.tokens.erase(first, first + gone);
  request.dropped += gone;
  request.prefill = known - gone;
  request.computed = request.shared_rows = 0;
  request.family = 0;   // its prompt is not what it was
  leave(request);
  request.state = RequestState::queued;
  insert_in_order(queued_, request.id);
  queued_tokens_ += request.prefill;
  ++context_shifts_;
  shifted_rows_ += request.prefill;
}

}  // namespace kvasir::core
