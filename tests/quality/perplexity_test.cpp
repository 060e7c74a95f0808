#include "quality/perplexity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/prng.hpp"
#include "tests/support/tiny_model.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::quality {
namespace {

using ::testing::HasSubstr;

struct Tiny {
  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const text::Tokenizer> tokenizer;
};

const Tiny& tiny() {
  static const Tiny loaded = [] {
    const kvasir::test::TinyModel file = kvasir::test::make_tiny_model(kvasir::test::TinyModelSpec::gqa());
    return Tiny{model::Model::load(file.file, {.isa = platform::available_isas().back(), .threads = 1}).value(),
                std::make_shared<const text::Tokenizer>(text::Tokenizer::from_gguf(file.file).value())};
  }();
  return loaded;
}

std::string random_text(std::size_t bytes) {
  PhiloxSequence random(3);
  std::string text;
  while (text.size() < bytes) text += static_cast<char>(' ' + random.below(95));
  return text;
}

engine::PoolConfig config_of(std::uint32_t rows) {
  engine::PoolConfig config;
  config.threads = 1;
  config.max_batched_tokens = rows;
  return config;
}

Result<PerplexityResult> run(const std::string& text, const PerplexityOptions& options, std::uint32_t rows = 512) {
  return perplexity(tiny().model, tiny().tokenizer, text, options, config_of(rows));
}

// The definition, with the whole window's logits and doubles.
double by_the_book(const std::string& text, std::uint32_t context, std::uint64_t& count) {
  const std::vector<TokenId> tokens = tiny().tokenizer->encode(text).value();
  double nll = 0;
  count = 0;
  for (std::size_t start = 0; start + context <= tokens.size(); start += context) {
    std::vector<TokenId> window(tokens.begin() + static_cast<std::ptrdiff_t>(start),
                                tokens.begin() + static_cast<std::ptrdiff_t>(start + context));
    if (tiny().tokenizer->adds_bos()) window[0] = *tiny().tokenizer->bos();
    engine::PoolConfig config = config_of(context);
    config.max_sequences = 1;
    config.logits_rows = context;
    auto engine = engine::Engine::create(tiny().model, nullptr, config).value();
    engine->set_logits_observer([&](RequestId, std::uint32_t position, std::span<const float> logits) {
      if (position < context / 2 || position + 1 == context) return;
      double sum = 0;
      for (const float x : logits) sum += std::exp(static_cast<double>(x));
      nll -= static_cast<double>(logits[static_cast<std::size_t>(window[position + 1])]) - std::log(sum);
      ++count;
    });
    engine::GenerateRequest request;
    request.prompt = window;
    request.max_tokens = 0;
    request.prompt_logits = true;
    engine->submit(request).value();
    std::vector<engine::TokenOutput> out;
    while (engine->has_work()) engine->step(out);
  }
  return std::exp(nll / static_cast<double>(count));
}

TEST(Perplexity, EqualsItsDefinition) {
  const std::string text = random_text(1000);
  for (const std::uint32_t context : {64u, 65u}) {
    std::uint64_t count = 0;
    const double expected = by_the_book(text, context, count);
    const PerplexityResult result = run(text, {.context = context}).value();
    EXPECT_NEAR(result.perplexity, expected, 1e-5 * expected);
    EXPECT_EQ(result.tokens, count);
    EXPECT_EQ(result.tokens, result.windows * (context - context / 2 - 1));
    EXPECT_GT(result.nll_stderr, 0);
    EXPECT_GT(result.perplexity, 50);   // random weights know nothing of 288 tokens
  }
}

TEST(Perplexity, ChunkSizesDoNotShow) {
  const std::string text = random_text(600);
  const double expected = run(text, {.context = 100}).value().nll;
  for (const std::uint32_t rows : {1u, 7u, 64u}) {
    const PerplexityResult result = run(text, {.context = 100}, rows).value();
    EXPECT_EQ(result.nll, expected);
    EXPECT_EQ(result.effective.max_num_batched_tokens, rows);
  }
}

TEST(Perplexity, ProgressAndLimit) {
  std::vector<PerplexityProgress> seen;
  PerplexityOptions options{.context = 64, .max_windows = 2};
  options.progress = [&](const PerplexityProgress& p) { seen.push_back(p); };
  const PerplexityResult result = run(random_text(1000), options).value();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].windows_done, 2u);
  EXPECT_EQ(seen[1].windows, 2u);
  EXPECT_EQ(seen[1].perplexity, result.perplexity);
}

TEST(Perplexity, StopsWhenAsked) {
  int asked = 0;
  PerplexityOptions options{.context = 64};
  options.stop = [&] { return ++asked == 3; };
  const auto result = run(random_text(1000), options, 16);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::cancelled);
}

TEST(Perplexity, BadInputNamesBothNumbers) {
  const auto short_text = run("too short", {.context = 64});
  ASSERT_FALSE(short_text.ok());
  EXPECT_EQ(short_text.error().code, ErrorCode::bad_input);
  EXPECT_THAT(short_text.error().message, HasSubstr("valid: at least 128 (two windows of 64)"));
  const auto too_long = run("x", {.context = 1 << 20});
  ASSERT_FALSE(too_long.ok());
  EXPECT_THAT(too_long.error().message, HasSubstr("context is 1048576, valid: 4 to "));
}

}  // namespace
}  // namespace kvasir::quality
