// The continuation promise: the logits of a token depend on the tokens before it and on nothing else. The same bits.
// Axes pairwise; with KVASIR_SOAK=1 (scripts/soak continuation) every combination of their values.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "artifact/gguf.hpp"
#include "tests/engine/continuation_cases.hpp"
#include "tests/engine/tiny_engine.hpp"

namespace kvasir::engine::test {
namespace {

TEST(Continuation, HowTheWorkIsCutNeverShows) {
  std::map<std::string, std::string> plain;
  const bool soak = std::getenv("KVASIR_SOAK") != nullptr;
  const std::vector<Case> cases = soak ? all_cases() : pairwise_cases();
  EXPECT_GE(cases.size(), 18u);
  std::size_t done = 0;
  for (const Case& c : cases) {
    // Windows are a few blocks long: one span edge is enough for them.
    const Text text = c.id.geometry >= Geometry::window ? Text{.prompt = 290} : Text{};
    std::string& expected = plain[c.id.name()];
    if (expected.empty()) expected = logits_hash(c.id, plain_work(), text);
    EXPECT_EQ(logits_hash(c.id, c.work, text), expected) << c.id.name() << ": " << c.work.name();
    if (++done % 100 == 0) std::fprintf(stderr, "%zu of %zu cases\n", done, cases.size());
  }
}

TEST(Continuation, TheHashSeesADifference) {
  const NumericId id;
  const Text text{.prompt = 40, .answer = 4};
  const std::string one = logits_hash(id, plain_work(), text);
  EXPECT_EQ(logits_hash(id, plain_work(), text), one);
  EXPECT_NE(logits_hash(id, plain_work(), {.prompt = 40, .answer = 4, .seed = 12}), one);
  EXPECT_NE(logits_hash(id, plain_work(), {.prompt = 40, .answer = 5}), one);
  EXPECT_NE(logits_hash({.kv = format::KvType::bf16}, plain_work(), text), one);
  EXPECT_NE(logits_hash({.compute = model::Compute::f32}, plain_work(), text), one);
}

// Hashes of fixed prompts are committed: every machine, every class and every process must reproduce them.
// KVASIR_UPDATE_HASHES=1 writes them anew (a new kernel revision means a new numeric id: say so in the change).
class ContinuationHashes : public ::testing::Test {
 protected:
  ContinuationHashes() {
    std::ifstream file(path_);
    if (file) hashes_ = nlohmann::ordered_json::parse(file);
  }

  void check(const std::string& name, const std::string& hash, const std::string& how) {
    if (update_) {
      if (updated_.contains(name)) {
        EXPECT_EQ(updated_[name], hash) << name << ": " << how;
      }
      updated_[name] = hash;
      return;
    }
    ASSERT_TRUE(hashes_.contains(name)) << name << " is not in " << path_;
    EXPECT_EQ(hashes_[name].get<std::string>(), hash) << name << ": " << how;
  }

  void TearDown() override {
    if (!update_) return;
    for (const auto& [name, hash] : updated_) hashes_[name] = hash;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    std::ofstream(path_) << hashes_.dump(2) << "\n";
  }

 private:
  const std::string path_ = KVASIR_SOURCE_DIR "/tests/data/continuation/hashes.json";
  const bool update_ = std::getenv("KVASIR_UPDATE_HASHES") != nullptr;
  nlohmann::ordered_json hashes_;
  std::map<std::string, std::string> updated_;
};

TEST_F(ContinuationHashes, OfTinyModelsInEveryClass) {
  for (const NumericId& id : all_numeric_ids()) {
    for (const platform::Isa isa : platform::available_isas()) {
      check(id.name(), logits_hash(id, {.chunk = 64, .isa = isa}, {.prompt = 300, .answer = 8}),
            std::string(platform::to_string(isa)));
    }
  }
}

// Every matrix of one type: its loading and its kernels, under both kinds of activations.
TEST_F(ContinuationHashes, OfTensorTypesInEveryClass) {
  using artifact::TensorType;
  for (const TensorType type : {TensorType::q2_k, TensorType::q3_k, TensorType::q4_k, TensorType::q5_k, TensorType::q6_k,
                                TensorType::iq4_nl, TensorType::iq4_xs})
    for (const model::Compute compute : {model::Compute::int8, model::Compute::f32})
      for (const platform::Isa isa : platform::available_isas()) {
        const auto model = load_tiny(kvasir::test::TinyModelSpec::k_quants(type), compute, isa);
        const std::string name = std::string("tiny/") + std::string(artifact::to_string(type)) + "/f16/" +
                                 (compute == model::Compute::int8 ? "int8" : "f32");
        check(name, logits_hash(model, format::KvType::f16, {.chunk = 16, .isa = isa}, {.prompt = 40, .answer = 4}),
              std::string(platform::to_string(isa)));
      }
}

TEST_F(ContinuationHashes, OfTheDefaultModel) {
  const std::string path = KVASIR_SOURCE_DIR "/models/SmolLM2-135M-Instruct-Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const artifact::GgufFile file = artifact::GgufFile::open(path).value();
  for (const platform::Isa isa : platform::available_isas()) {
    const auto model = model::Model::load(file, {.isa = isa, .threads = 2}).value();
    const std::string how(platform::to_string(isa));
    const Text brief{.prompt = 14, .answer = 3};
    check("SmolLM2-135M-Instruct-Q4_1/f16/int8/short", logits_hash(model, format::KvType::f16, {.threads = 2, .isa = isa}, brief), how);
    if (isa == platform::Isa::scalar) continue;   // too slow for the longer one
    const Text across{.prompt = 262, .answer = 6};   // past a span edge
    const Work works[] = {{.chunk = 0, .threads = 2, .isa = isa},
                          {.chunk = 33, .threads = 1, .isa = isa, .block_tokens = 16, .shuffled = true},
                          {.chunk = 48, .threads = 2, .isa = isa, .block_tokens = 64, .neighbours = 3}};
    for (const Work& work : works) {
      check("SmolLM2-135M-Instruct-Q4_1/f16/int8/long", logits_hash(model, format::KvType::f16, work, across), work.name());
    }
  }
}

}  // namespace
}  // namespace kvasir::engine::test
