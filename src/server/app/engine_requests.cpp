#include "server/app/engine_requests.hpp"

#include <algorithm>
#include <utility>

namespace kvasir::server {
namespace {

api::ApiResult<std::vector<std::vector<TokenId>>> bad_word_ids(const std::vector<std::string>& words,
                                                               const text::Tokenizer& tokenizer) {
  std::vector<std::vector<TokenId>> out;
  for (const std::string& word : words) {
    const std::size_t begin = word.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    const std::string with_space = std::string(1, ' ').append(word, begin);
    const text::EncodeOptions plain{.add_special = false, .parse_special = false};
    auto bare = tokenizer.encode(std::string_view(with_space).substr(1), plain);
    if (!bare) return api::from_error(bare.error(), "bad_words");
    auto spaced = tokenizer.encode(with_space, plain);
    if (!spaced) return api::from_error(spaced.error(), "bad_words");
    const bool other = spaced->size() == bare->size() && spaced->front() != bare->front();
    out.push_back(std::move(*bare));
    if (other) out.push_back(std::move(*spaced));
  }
  return out;
}

engine::SamplingParams sampling_of(const api::RequestOptions& options, std::uint64_t seed,
                                   const std::vector<std::vector<TokenId>>& bad_words) {
  engine::SamplingParams out;
  out.temperature = options.temperature;
  out.top_k = options.top_k;
  out.top_p = options.top_p;
  out.min_p = options.min_p;
  out.seed = seed;
  // What best_of chooses by, whether or not the answer shows it.
  out.logprobs = options.samples > options.n ? std::max(options.logprobs, 0) : options.logprobs;
  out.presence_penalty = options.presence_penalty;
  out.frequency_penalty = options.frequency_penalty;
  out.repetition_penalty = options.repetition_penalty;
  for (const api::LogitBias& bias : options.logit_bias) out.logit_bias.push_back({bias.token, bias.bias});
  out.allowed_token_ids = options.allowed_token_ids;
  out.min_tokens = options.min_tokens;
  out.stop_token_ids = options.stop_token_ids;
  out.bad_words = bad_words;
  return out;
}

}  // namespace

api::ApiResult<Work> make_work(const api::RequestOptions& options, std::span<const api::PreparedPrompt> prompts,
                               const ServedModel& model, std::uint64_t drawn_seed) {
  KV_ASSIGN(const auto bad_words, bad_word_ids(options.bad_words, *model.facts().tokenizer));
  Work work;
  work.seed = options.seed.value_or(drawn_seed);
  work.seed_drawn = !options.seed;
  work.shape = {.prompts = prompts.size(), .n = options.n, .streams = options.streams(), .max_tokens = 0};
  work.search = options.searches();
  engine::GenerateRequest base;
  base.sampling = sampling_of(options, work.seed, bad_words);
  base.stop = options.stop;
  base.include_stop = options.include_stop;
  base.ignore_eos = options.ignore_eos;
  base.special_text = options.special_text;
  base.prompt_logprobs = options.prompt_logprobs;
  base.beam = options.beam;
  for (const api::PreparedPrompt& prompt : prompts) {
    base.max_tokens = options.max_tokens ? *options.max_tokens : model.output_limit(prompt.ids.size());
    if (work.requests.empty()) work.shape.max_tokens = *base.max_tokens;
    for (std::uint32_t choice = 0; choice < options.streams(); ++choice) {
      work.requests.push_back(base);
      work.requests.back().prompt = prompt.ids;
      work.requests.back().sampling.choice = choice;
    }
  }
  return work;
}

}  // namespace kvasir::server
