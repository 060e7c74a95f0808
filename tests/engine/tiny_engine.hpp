// Engines over tiny random models, for the tests of this layer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "format/kv_format.hpp"
#include "model/model.hpp"
#include "tests/support/tiny_model.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::engine::test {

// Aborts on an error: the specs are the tests' own.
std::shared_ptr<const model::Model> load_tiny(const kvasir::test::TinyModelSpec& spec,
                                              model::Compute compute = model::Compute::int8,
                                              platform::Isa isa = platform::available_isas().back());
std::shared_ptr<const text::Tokenizer> tiny_tokenizer();

// The GQA model and an engine of `blocks` blocks of 16 tokens.
PoolConfig pool_of(std::uint32_t blocks, std::uint32_t block_tokens = 16);
std::unique_ptr<Engine> make_engine(std::shared_ptr<const model::Model> model, const PoolConfig& config,
                                    bool with_tokenizer = false);
std::shared_ptr<const model::Model> shared_gqa();   // loaded once a process

// Bytes of `blocks` blocks.
std::uint64_t bytes_of_blocks(const model::Model& model, format::KvFormat format, std::uint32_t block_tokens,
                              std::uint32_t blocks);

// Seeded tokens of the tiny vocabulary, no special ones among them.
std::vector<TokenId> random_prompt(std::uint32_t tokens, std::uint64_t seed);
GenerateRequest request_of(std::vector<TokenId> prompt, std::uint32_t max_tokens);

struct Answered {
  std::vector<TokenId> tokens;
  std::string text;
  std::vector<float> logprobs;
  FinishReason finish = FinishReason::none;
  std::int32_t stop_index = -1;
  std::string error;
};
// Steps until the request has its last output. Other requests run along.
Answered run_to_end(Engine& engine, RequestId id);
// Submits and runs to the end; aborts if refused.
Answered answer(Engine& engine, GenerateRequest request);

}  // namespace kvasir::engine::test
