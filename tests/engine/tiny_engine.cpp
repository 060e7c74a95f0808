#include "tests/engine/tiny_engine.hpp"

#include "base/check.hpp"
#include "base/prng.hpp"
#include "format/block_layout.hpp"

namespace kvasir::engine::test {

std::shared_ptr<const model::Model> load_tiny(const kvasir::test::TinyModelSpec& spec, model::Compute compute,
                                              platform::Isa isa) {
  const kvasir::test::TinyModel tiny = kvasir::test::make_tiny_model(spec);
  return model::Model::load(tiny.file, {.compute = compute, .isa = isa, .threads = 1}).value();
}

std::shared_ptr<const text::Tokenizer> tiny_tokenizer() {
  const kvasir::test::TinyModel tiny = kvasir::test::make_tiny_model(kvasir::test::TinyModelSpec::gqa());
  return std::make_shared<const text::Tokenizer>(text::Tokenizer::from_gguf(tiny.file).value());
}

std::shared_ptr<const model::Model> shared_gqa() {
  static const std::shared_ptr<const model::Model> model = load_tiny(kvasir::test::TinyModelSpec::gqa());
  return model;
}

std::uint64_t bytes_of_blocks(const model::Model& model, format::KvFormat format, std::uint32_t block_tokens,
                              std::uint32_t blocks) {
  const format::KvGeometry kv = model.geometry().kv_geometry(format, block_tokens);
  KV_CHECK(kv.groups.size() == 1, "one group");
  return format::BlockLayout::create(kv.groups[0]).value().block_bytes() * blocks;
}

PoolConfig pool_of(std::uint32_t blocks, std::uint32_t block_tokens) {
  PoolConfig config;
  config.block_tokens = block_tokens;
  config.kv_cache_bytes = bytes_of_blocks(*shared_gqa(), config.kv_format, block_tokens, blocks);
  config.max_sequences = 8;
  config.max_batched_tokens = 64;
  config.max_queued = 512;
  config.threads = 1;
  return config;
}

std::unique_ptr<Engine> make_engine(std::shared_ptr<const model::Model> model, const PoolConfig& config,
                                    bool with_tokenizer) {
  return Engine::create(std::move(model), with_tokenizer ? tiny_tokenizer() : nullptr, config).value();
}

std::vector<TokenId> random_prompt(std::uint32_t tokens, std::uint64_t seed) {
  PhiloxSequence random(seed, 0x9a);
  std::vector<TokenId> prompt(tokens);
  for (TokenId& token : prompt) token = static_cast<TokenId>(3 + random.below(256));
  return prompt;
}

GenerateRequest request_of(std::vector<TokenId> prompt, std::uint32_t max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  return request;
}

Answered run_to_end(Engine& engine, RequestId id) {
  Answered all;
  std::vector<TokenOutput> out;
  while (all.finish == FinishReason::none) {
    KV_CHECK(engine.has_work(), "the request ends before the work does");
    engine.step(out);
    for (const TokenOutput& output : out) {
      if (output.request != id) continue;
      if (output.token >= 0) all.tokens.push_back(output.token);
      all.text += output.text;
      if (output.has_logprob) all.logprobs.push_back(output.logprob);
      all.finish = output.finish;
      all.stop_index = output.stop_index;
      all.error = output.error;
    }
  }
  return all;
}

Answered answer(Engine& engine, GenerateRequest request) {
  return run_to_end(engine, engine.submit(std::move(request)).value());
}

}  // namespace kvasir::engine::test
