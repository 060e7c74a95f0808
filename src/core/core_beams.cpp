// Beams: requests that go on from each other, and live and end together.
#include <algorithm>

#include "base/check.hpp"
#include "core/core.hpp"

namespace kvasir::core {

std::size_t Core::beams_index(RequestId leader) const {
  const auto found = std::ranges::find(beams_, leader, [](const Beams& b) { return b.members.front(); });
  KV_CHECK(found != beams_.end(), "no such beams");
  return static_cast<std::size_t>(found - beams_.begin());
}

std::span<const RequestId> Core::beams(RequestId leader) const {
  const Beams& beams = beams_[beams_index(leader)];
  return std::span(beams.members).first(beams.branched ? beams.members.size() : 1);
}

void Core::continue_beams(RequestId leader, std::span<const BeamStep> next) {
  Beams& beams = beams_of(leader);
  KV_CHECK(in_flight_ && next.size() == beams.members.size() && beams.next.empty(), "each beam goes on once a step");
  KV_CHECK(at(leader).generated() < at(leader).max_new_tokens, "no token beyond the limit");
  beams.next.assign(next.begin(), next.end());
}

void Core::end_beams(RequestId leader, FinishReason reason) {
  KV_CHECK(in_flight_, "beams end with a step");
  beams_of(leader).end = reason;
}

// After the rows of a step are committed, or given up.
void Core::settle_beams() {
  for (std::size_t i = beams_.size(); i-- > 0;) {
    Beams& beams = beams_[i];
    Request& leader = at(beams.members.front());
    if (leader.cancel_requested) finish(leader, FinishReason::cancelled);
    else if (beams.end != FinishReason::none) finish(leader, beams.end);
    else if (!beams.next.empty()) branch(beams);
  }
}

void Core::branch(Beams& beams) {
  const Request& leader = at(beams.members.front());
  std::vector<std::uint32_t> parents;
  std::vector<SequenceId> sequences;
  std::vector<std::vector<TokenId>> outputs;
  for (const RequestId id : beams.members) {
    sequences.push_back(at(id).sequence);
    outputs.emplace_back(at(id).output().begin(), at(id).output().end());
  }
  for (const BeamStep& step : beams.next) {
    KV_CHECK(step.from < (beams.branched ? beams.members.size() : 1), "a beam goes on from one that there is");
    parents.push_back(step.from);
  }
  cache_.fork_among(sequences, parents, beams.reserve);
  for (std::size_t m = 0; m < beams.members.size(); ++m) {
    Request& member = at(beams.members[m]);
    member.sequence = sequences[m];
    member.computed = leader.computed;
    member.tokens.resize(member.prompt_tokens);
    member.tokens.insert(member.tokens.end(), outputs[parents[m]].begin(), outputs[parents[m]].end());
    member.tokens.push_back(beams.next[m].token);
    if (member.state == RequestState::unborn) insert_in_order(running_, member.id);
    member.state = RequestState::decoding;
  }
  beams.branched = true;
  beams.next.clear();
}

// All of them leave; the others than the leader are forgotten with that.
void Core::give_up_beams(RequestId leader) {
  Beams& beams = beams_of(leader);
  for (const RequestId id : beams.members)
    if (at(id).state != RequestState::unborn) leave(at(id));
  cache_.give_back(beams.reserve);
  for (const RequestId id : std::span(beams.members).subspan(1)) drop(at(id));
  beams_.erase(beams_.begin() + static_cast<std::ptrdiff_t>(beams_index(leader)));
}

}  // namespace kvasir::core
