// The parts of a step, and what a request costs while it lives.
#include <algorithm>

#include "cache/footprint.hpp"
#include "engine/engine_state.hpp"

namespace kvasir::engine {

Live::Live(RequestId request_id, const GenerateRequest& request, std::uint64_t rows, std::uint32_t max_tokens,
           const text::Tokenizer* tokenizer)
    : id(request_id), sampling(request.sampling), prompt_logits_from(kNoPromptLogits),
      bound_rows(rows), answer(request, max_tokens, tokenizer) {
  scoring.logprobs = request.prompt_logprobs;
  if (request.prompt_logits) prompt_logits_from = request.prompt_logits_from;
  if (request.prompt_logprobs >= 0) prompt_logits_from = 0;
  if (!LogitRules::needed_by(sampling)) return;
  const std::span<const TokenId> ends = tokenizer != nullptr ? tokenizer->eog_ids() : std::span<const TokenId>();
  rules.emplace(sampling, request.prompt, ends, max_tokens);
  sampling.allowed_token_ids = {};   // the rules have them, and lists may be as long as the vocabulary
  sampling.bad_words = {};
  sampling.logit_bias = {};
}

std::uint64_t Engine::State::active_bytes() const {
  std::uint64_t bytes = 0;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    bytes += core.cache().stats(group).pool.active * store.view(group).layout.block_bytes();
  }
  return bytes;
}

std::uint64_t Engine::State::bound_blocks(const Live& request, std::uint32_t group) const {
  const std::uint64_t one = format::blocks_held(request.bound_rows, store.plan().groups[group].reach,
                                                config.max_batched_tokens, store.view(group).layout.block_tokens());
  return one * (request.beams ? request.beams->width() : 1);
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

// Logits are held for some rows at a time: what is collected is sampled before the next ones take their place.
void Engine::State::sample() {
  rows.clear();
  row_requests.clear();
  results.clear();
  const std::vector<sched::Chunk>& chunks = core.current_plan().chunks;
  std::size_t sampled = 0;
  std::uint32_t next_row = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::uint32_t wanted = batch.sequences()[i].logits_rows;
    const std::uint32_t first = chunks[i].first_position + chunks[i].token_count - wanted;
    for (std::uint32_t r = 0; r < wanted; ++r, ++next_row) {
      if (!forward.holds(next_row)) {
        sampler.sample(std::span(rows).subspan(sampled), pool);
        sampled = rows.size();
        forward.hold_from(next_row);
      }
      if (observer) observer(chunks[i].request, first + r, forward.logits(next_row));
      add_row(chunks[i], first + r, forward.logits(next_row));
    }
  }
  sampler.sample(std::span(rows).subspan(sampled), pool);
}

// The row of the token fed at `position`: the last one of a chunk may be sampled from, those of a prompt scored.
void Engine::State::add_row(const sched::Chunk& chunk, std::uint32_t position, std::span<const float> logits) {
  const core::Request& life = *core.find(chunk.request);
  Live& request = live_of(chunk.request);
  const bool last = position + 1 == chunk.first_position + chunk.token_count;
  if (request.beams && last && chunk.wants_logits) return offer_to_beams(request, chunk.request, logits);
  const bool scored = request.scoring.logprobs >= 0 && position + 1 < life.prompt_tokens && life.dropped == 0;
  if (!scored && !(last && chunk.wants_logits)) return;
  SampleRow& row = rows.emplace_back();
  row.logits = logits;
  row.position = life.dropped + position + 1;   // in all of the text: what is drawn with it is drawn once
  row.params = scored ? &request.scoring : &request.sampling;
  if (scored) row.given = life.tokens[position + 1];
  else if (request.rules) row.rules = &*request.rules;
  row_requests.push_back(&request);
}

// Tokens become text; what ends here is told to the core by `results`.
void Engine::State::emit(std::vector<TokenOutput>& out) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SampleRow& row = rows[i];
    Live& request = *row_requests[i];
    TokenOutput& output = out.emplace_back();
    output.request = request.id;
    output.token = row.token;
    output.prompt = row.given >= 0;
    output.position = row.position;
    output.has_logprob = row.params->logprobs >= 0;
    output.logprob = row.logprob;
    output.rank = row.rank;
    output.top_logprobs = row.top_logprobs();
    output.prompt_tokens = core.find(request.id)->prompt_tokens;
    if (!output.prompt) emit_answer(row, request, output);
    output.completion_tokens = request.answer.tokens();
  }
  advance_beams(out);
  totals.peak_active_bytes = std::max(totals.peak_active_bytes, active_bytes());
}

void Engine::State::emit_answer(const SampleRow& row, Live& request, TokenOutput& output) {
  const Answer::Push push = request.answer.push(row.token);
  if (request.rules) request.rules->push(row.token);
  results.push_back({request.id, row.token, push.finish == FinishReason::stop});
  output.text = request.answer.text();
  output.finish = push.finish;
  output.stop_index = push.stop_index;
  output.stop_token = push.stop_token;
  if (push.finish == FinishReason::none) return;
  request.reported = true;
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

void Engine::State::remember_active() {
  for (std::uint32_t group = 0; config.poison_free && group < groups(); ++group) {
    for (std::uint32_t b = 0; b < store.blocks(group); ++b) {
      const auto block = static_cast<BlockId>(b);
      if (core.cache().state(group, block) == cache::BlockState::active) active[group].push_back(block);
    }
  }
}

void Engine::State::poison_freed() {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    for (const BlockId block : active[group]) {
      const cache::BlockState now = core.cache().state(group, block);
      if (now == cache::BlockState::free || now == cache::BlockState::absent) store.poison_block(group, block);
    }
    active[group].clear();
  }
}

}  // namespace kvasir::engine
