// The beam search against transformers' (tests/data/quality/beams.json, by scripts/goldens/beam_search.py): the same
// sequences in the same order with the same scores, for every width, length penalty and way to stop.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "artifact/gguf.hpp"
#include "tests/engine/tiny_engine.hpp"

namespace kvasir::engine::test {
namespace {

using Json = nlohmann::json;

constexpr float kScoreTolerance = 1e-4f;

std::string data_path(const std::string& file) { return KVASIR_SOURCE_DIR "/tests/data/quality/" + file; }

std::unique_ptr<Engine> engine_of(const std::string& model) {
  const artifact::GgufFile file = artifact::GgufFile::open(data_path(model + ".gguf")).value();
  auto loaded = model::Model::load(file, {.compute = model::Compute::f32, .isa = platform::available_isas().back(), .threads = 1});
  PoolConfig config;
  config.block_tokens = 16;
  config.kv_cache_bytes = 4 << 20;
  config.kv_format = {.k = format::KvType::f32, .v = format::KvType::f32};
  config.max_sequences = 8;
  config.max_batched_tokens = 64;
  config.threads = 1;
  return Engine::create(std::move(loaded).value(), nullptr, config).value();
}

GenerateRequest request_of(const Json& golden) {
  GenerateRequest request;
  request.prompt = golden["prompt"].get<std::vector<TokenId>>();
  request.max_tokens = golden["max_new_tokens"].get<std::uint32_t>();
  const Json& early = golden["early_stopping"];
  request.beam = {.width = golden["beams"],
                  .returned = golden["beams"],
                  .length_penalty = golden["length_penalty"],
                  .early_stopping = early == true    ? EarlyStopping::on
                                    : early == false ? EarlyStopping::off
                                                     : EarlyStopping::never};
  request.sampling.stop_token_ids = {golden["end"].get<TokenId>()};
  request.sampling.logprobs = 0;
  return request;
}

struct Found {
  std::vector<TokenId> tokens;
  float sum = 0;
};

std::vector<Found> search(Engine& engine, const GenerateRequest& request) {
  std::vector<Found> found;
  EXPECT_TRUE(engine.submit(request).ok());
  std::vector<TokenOutput> out;
  while (engine.has_work()) {
    engine.step(out);
    for (const TokenOutput& output : out) {
      found.resize(std::max<std::size_t>(found.size(), output.choice + 1));
      found[output.choice].tokens.push_back(output.token);
      found[output.choice].sum += output.logprob;
    }
  }
  return found;
}

void expect_goldens(const std::string& model) {
  std::ifstream file(data_path("beams.json"));
  const Json goldens = Json::parse(file)[model];
  ASSERT_GE(goldens.size(), 40u);
  const auto engine = engine_of(model);
  for (std::size_t i = 0; i < goldens.size(); ++i) {
    const Json& golden = goldens[i];
    SCOPED_TRACE(testing::Message() << "case " << i << ": " << golden["beams"] << " beams, length penalty " << golden["length_penalty"]
                                    << ", early stopping " << golden["early_stopping"]);
    const std::vector<Found> found = search(*engine, request_of(golden));
    ASSERT_EQ(found.size(), golden["answers"].size());
    for (std::size_t place = 0; place < found.size(); ++place) {
      const Json& expected = golden["answers"][place];
      EXPECT_EQ(Json(found[place].tokens), expected["tokens"]) << "place " << place;
      const auto tokens = static_cast<float>(found[place].tokens.size());
      EXPECT_NEAR(found[place].sum / std::pow(tokens, golden["length_penalty"].get<float>()), expected["score"].get<float>(),
                  kScoreTolerance * std::max(1.0f, std::abs(expected["score"].get<float>())));
    }
    engine->check_invariants();
  }
  EXPECT_EQ(engine->accounting().active_bytes, 0u);
}

TEST(BeamGolden, GroupedHeadsOfLlama) { expect_goldens("tiny-llama-gqa"); }
TEST(BeamGolden, Qwen3) { expect_goldens("tiny-qwen3"); }

}  // namespace
}  // namespace kvasir::engine::test
