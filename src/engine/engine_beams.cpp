// Beam searches in the step loop: core has the sequences, engine/beam_search.hpp decides, here they meet.
#include <algorithm>

#include "engine/engine_state.hpp"

namespace kvasir::engine {

void Engine::State::begin_beams(Live& request, const GenerateRequest& asked, std::uint32_t max_tokens) {
  if (asked.beam.width <= 1) return;
  std::vector<TokenId> ends = asked.sampling.stop_token_ids;
  if (tokenizer != nullptr && !asked.ignore_eos) ends.insert(ends.end(), tokenizer->eog_ids().begin(), tokenizer->eog_ids().end());
  std::ranges::sort(ends);
  ends.erase(std::ranges::unique(ends).begin(), ends.end());
  request.beams.emplace(asked.beam, max_tokens, ends, model->geometry().vocabulary, model->options().isa);
  request.beam_request = asked;
  request.beam_request.prompt = {};
}

void Engine::State::offer_to_beams(Live& request, RequestId beam, std::span<const float> logits) {
  const std::span<const RequestId> beams = core.beams(request.id);
  const auto at = std::ranges::find(beams, beam) - beams.begin();
  request.beams->offer(static_cast<std::uint32_t>(at), logits);
  request.offered = true;
}

void Engine::State::advance_beams(std::vector<TokenOutput>& out) {
  for (const sched::Chunk& chunk : core.current_plan().chunks) {
    if (core.find(chunk.request)->leader != chunk.request) continue;
    Live& request = *live.at(chunk.request);
    if (!request.offered) continue;
    request.offered = false;
    request.beams->advance();
    if (request.beams->over()) emit_beams(request, out);
    else core.continue_beams(request.id, request.beams->next());
  }
}

// All answers at once, each token with its text, as if they had come one by one.
void Engine::State::emit_beams(Live& request, std::vector<TokenOutput>& out) {
  const std::uint32_t prompt_tokens = core.find(request.id)->prompt_tokens;
  const std::span<const Hypothesis> best = request.beams->best();
  for (std::uint32_t choice = 0; choice < best.size(); ++choice) {
    const Hypothesis& found = best[choice];
    Answer answer(request.beam_request, request.answer.max_tokens(), tokenizer.get());
    for (std::size_t i = 0; i < found.tokens.size(); ++i) {
      const Answer::Push push = answer.push(found.tokens[i]);
      TokenOutput& output = out.emplace_back();
      output.request = request.id;
      output.choice = choice;
      output.token = found.tokens[i];
      output.position = prompt_tokens + static_cast<std::uint32_t>(i);
      output.text = request.beam_texts.emplace_back(answer.text());
      output.has_logprob = request.sampling.logprobs >= 0;
      output.logprob = found.logprobs[i];
      output.finish = push.finish;
      output.stop_token = push.stop_token;
      output.prompt_tokens = prompt_tokens;
      output.completion_tokens = answer.tokens();
    }
  }
  request.reported = true;
  core.end_beams(request.id, best.front().ended ? core::FinishReason::stop : core::FinishReason::length);
}

}  // namespace kvasir::engine
