// The parts of a step, and what a request costs while it lives.
#include <algorithm>

#include "cache/footprint.hpp"
#include "engine/engine_state.hpp"

namespace kvasir::engine {

std::uint64_t Engine::State::active_bytes() const {
  std::uint64_t bytes = 0;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    bytes += core.cache().stats(group).pool.active * store.view(group).layout.block_bytes();
  }
  return bytes;
}

std::uint64_t Engine::State::bound_blocks(const Live& request, std::uint32_t group) const {
  return cache::blocks_for_rows(request.bound_rows, store.view(group).layout.block_tokens());
}

Status Engine::State::populate_for(const Live& request) {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const std::uint64_t wanted = live_blocks[group] + bound_blocks(request, group);
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, store.blocks(group)));
    if (count > store.populated_blocks(group)) KV_TRY(store.populate_blocks(group, count));
  }
  return ok_status();
}

void Engine::State::forget(RequestId id) {
  const auto at = live.find(id);
  for (std::uint32_t group = 0; group < groups(); ++group) live_blocks[group] -= bound_blocks(*at->second, group);
  ended.push_back(std::move(at->second));   // outputs of this step still point into it
  live.erase(at);
  core.forget(id);
}

void Engine::State::observe() {
  if (!observer) return;
  const std::vector<sched::Chunk>& chunks = core.current_plan().chunks;
  std::uint32_t row = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::uint32_t wanted = batch.sequences()[i].logits_rows;
    const std::uint32_t first = chunks[i].first_position + chunks[i].token_count - wanted;
    for (std::uint32_t r = 0; r < wanted; ++r) observer(chunks[i].request, first + r, forward.logits(row++));
  }
}

void Engine::State::sample() {
  rows.clear();
  row_requests.clear();
  results.clear();
  const std::vector<sched::Chunk>& chunks = core.current_plan().chunks;
  std::uint32_t next_row = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    next_row += batch.sequences()[i].logits_rows;
    if (!chunks[i].wants_logits) continue;
    Live* request = live.at(chunks[i].request).get();
    SampleRow& row = rows.emplace_back();
    row.logits = forward.logits(next_row - 1);   // the last row of the chunk
    row.params = &request->sampling;
    row.position = chunks[i].first_position + chunks[i].token_count;
    row_requests.push_back(request);
  }
  sampler.sample(rows, pool);
}

// Tokens become text; what ends here is told to the core by `results`.
void Engine::State::emit(std::vector<TokenOutput>& out) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SampleRow& row = rows[i];
    Live& request = *row_requests[i];
    const Answer::Push push = request.answer.push(row.token);
    results.push_back({request.id, row.token, push.finish == FinishReason::stop});
    TokenOutput& output = out.emplace_back();
    output.request = request.id;
    output.token = row.token;
    output.position = row.position;
    output.text = request.answer.text();
    output.has_logprob = row.params->logprobs >= 0;
    output.logprob = row.logprob;
    output.top_logprobs = row.top_logprobs();
    output.finish = push.finish;
    output.stop_index = push.stop_index;
    output.prompt_tokens = core.find(request.id)->prompt_tokens;
    output.completion_tokens = request.answer.tokens();
    if (push.finish != FinishReason::none) {
      request.reported = true;
      remember_blocks(request.id);
    }
  }
  for (const sched::Chunk& chunk : core.current_plan().chunks) {   // scored prompts end without a token
    const core::Request& request = *core.find(chunk.request);
    const bool scored = chunk.first_position + chunk.token_count == request.prompt_tokens && !chunk.wants_logits;
    if (scored) remember_blocks(chunk.request);
  }
  totals.peak_active_bytes = std::max(totals.peak_active_bytes, active_bytes());
}

// Requests that the core has finished: those without a token (a scored prompt, one that can no longer be served) get
// their last output here.
void Engine::State::emit_ended(std::vector<TokenOutput>& out) {
  finished.assign(core.finished().begin(), core.finished().end());
  for (const RequestId id : finished) {
    const core::Request& ended_request = *core.find(id);
    Live& request = *live.at(id);
    if (!request.reported) {
      TokenOutput& output = out.emplace_back();
      output.request = id;
      output.finish = FinishReason::length;
      output.position = ended_request.computed;
      output.prompt_tokens = ended_request.prompt_tokens;
      output.completion_tokens = request.answer.tokens();
      if (ended_request.reason == core::FinishReason::error) {
        output.finish = FinishReason::error;
        request.error = cache::to_error(ended_request.refusal).message;
        output.error = request.error;
      }
    }
    ++totals.finished;
    forget(id);
  }
}

void Engine::State::remember_blocks(RequestId id) {
  const core::Request* request = config.poison_free ? core.find(id) : nullptr;
  if (request == nullptr || !request->running()) return;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const std::span<const BlockId> ids = core.cache().table(request->sequence, group).ids();
    freed[group].insert(freed[group].end(), ids.begin(), ids.end());
  }
}

void Engine::State::poison_remembered() {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    for (const BlockId block : freed[group]) store.poison_block(group, block);
    freed[group].clear();
  }
}

}  // namespace kvasir::engine
