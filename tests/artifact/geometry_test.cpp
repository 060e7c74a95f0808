#include "artifact/geometry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "tests/support/gguf_writer.hpp"

namespace kvasir::artifact {
namespace {

using std::string_view_literals::operator""sv;
using test::GgufWriter;
using testing::ElementsAre;
using testing::HasSubstr;

// A vocabulary-only file of the common keys. `set` writes one more key, or another value of a common one.
struct Keys {
  std::string architecture = "llama";
  std::uint32_t layers = 4, width = 512, heads = 8;
  std::vector<std::string> without;
  std::vector<std::function<void(GgufWriter&)>> with;

  template <class T>
  Keys& set(std::string suffix, T value) {
    without.push_back(suffix);
    with.push_back([key = architecture + "." + suffix, value](GgufWriter& w) { w.value(key, value); });
    return *this;
  }
  template <class T>
  Keys& set_array(std::string suffix, std::vector<T> values) {
    without.push_back(suffix);
    with.push_back([key = architecture + "." + suffix, values](GgufWriter& w) { w.array(key, values); });
    return *this;
  }
  Keys& drop(std::string suffix) {
    without.push_back(std::move(suffix));
    return *this;
  }

  Result<ModelGeometry> read() const {
    GgufWriter writer;
    writer.value<std::string_view>("general.architecture", architecture);
    const auto common = [&](const std::string& suffix, auto value) {
      if (std::find(without.begin(), without.end(), suffix) == without.end())
        writer.value(architecture + "." + suffix, value);
    };
    common("block_count", layers);
    common("embedding_length", width);
    common("context_length", 4096u);
    common("feed_forward_length", 1024u);
    common("attention.head_count", heads);
    common("vocab_size", 1000u);
    for (const auto& write : with) write(writer);
    const std::vector<std::byte> bytes = writer.bytes();
    const auto file = GgufFile::parse(bytes, "test.gguf");
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
    return ModelGeometry::from_gguf(*file);
  }

  // The message of the refusal.
  std::string refusal(ErrorCode code = ErrorCode::bad_input) const {
    const auto geometry = read();
    if (geometry.ok()) return "not refused";
    EXPECT_EQ(geometry.error().code, code);
    return geometry.error().message;
  }
};

std::uint64_t kv_bytes(const ModelGeometry& geometry, std::uint64_t tokens) {
  std::uint64_t total = 0;
  for (const format::CacheGroup& group : geometry.kv_geometry({}, 32).groups)
    total += format::BlockLayout::create(group)->bytes_per_token() * tokens;
  return total;
}

TEST(Geometry, CommonKeysAndTheirDefaults) {
  const auto geometry = Keys{}.read();
  ASSERT_TRUE(geometry.ok()) << geometry.error().message;
  EXPECT_EQ(geometry->architecture, "llama");
  EXPECT_EQ(geometry->name, "");
  EXPECT_EQ(geometry->layers, 4u);
  EXPECT_EQ(geometry->width, 512u);
  EXPECT_EQ(geometry->head_dim, 64u) << "width / heads";
  EXPECT_EQ(geometry->feed_forward, 1024u);
  EXPECT_EQ(geometry->context, 4096u);
  EXPECT_EQ(geometry->vocabulary, 1000u);
  EXPECT_EQ(geometry->norm_epsilon, 1e-5);
  EXPECT_EQ(geometry->rope.dim, 64u);
  EXPECT_EQ(geometry->rope.base, 10000);
  EXPECT_EQ(geometry->rope.scaling, RopeScaling::none);
  EXPECT_EQ(geometry->window, 0u);
  EXPECT_FALSE(geometry->tied_head) << "a file without tensors ties nothing";
  EXPECT_EQ(geometry->parameters, 0u);
}

// Known fault: KV heads given per layer as an array of which only the first entry was read.
TEST(GeometryKvHeads, CountLayerByLayerAndGrowLinearlyWithTheContext) {
  const auto mixed = Keys{}.set_array<std::uint32_t>("attention.head_count_kv", {0, 4, 0, 4}).set("attention.key_length", 64u)
                         .set("attention.value_length", 64u).read();
  ASSERT_TRUE(mixed.ok()) << mixed.error().message;
  EXPECT_THAT(mixed->kv_heads, ElementsAre(0, 4, 0, 4));
  const std::uint64_t row = 2 * 64 * 2;  // K and V, f16
  EXPECT_EQ(kv_bytes(*mixed, 4096), 4096 * (4 + 4) * row);
  EXPECT_EQ(kv_bytes(*mixed, 32768), 8 * kv_bytes(*mixed, 4096));
  const format::KvGeometry groups = mixed->kv_geometry({}, 32);
  ASSERT_EQ(groups.groups.size(), 1u);
  EXPECT_THAT(groups.groups[0].layers, ElementsAre(1, 3));
}

TEST(GeometryKvHeads, ScalarConstantArrayAndAbsenceAgree) {
  const auto scalar = Keys{}.set("attention.head_count_kv", 2u).read();
  const auto array = Keys{}.set_array<std::int32_t>("attention.head_count_kv", {2, 2, 2, 2}).read();
  ASSERT_TRUE(scalar.ok() && array.ok());
  EXPECT_EQ(scalar->kv_heads, array->kv_heads);
  EXPECT_EQ(kv_bytes(*scalar, 4096), kv_bytes(*array, 4096));
  EXPECT_THAT(Keys{}.read()->kv_heads, ElementsAre(8, 8, 8, 8)) << "absent: as many as query heads";
}

TEST(GeometryKvHeads, DifferentCountsMakeAGroupEach) {
  const auto geometry = Keys{}.set_array<std::uint32_t>("attention.head_count_kv", {8, 2, 8, 1}).read();
  ASSERT_TRUE(geometry.ok());
  const format::KvGeometry kv = geometry->kv_geometry({format::KvType::bf16, format::KvType::f32}, 64);
  ASSERT_EQ(kv.groups.size(), 3u);
  EXPECT_THAT(kv.groups[0].layers, ElementsAre(0, 2));
  EXPECT_THAT(kv.groups[1].layers, ElementsAre(1));
  EXPECT_EQ(kv.groups[2].kv_heads, 1u);
  EXPECT_EQ(kv.groups[2].block_tokens, 64u);
  EXPECT_EQ(kv.groups[0].format.k, format::KvType::bf16);
  EXPECT_EQ(kv.groups[0].format.v, format::KvType::f32);
}

TEST(GeometryKvHeads, WrongOnesAreRefused) {
  const auto kv = [](std::vector<std::uint32_t> values) { return Keys{}.set_array("attention.head_count_kv", values).refusal(); };
  EXPECT_EQ(kv({4, 4, 4}), "test.gguf: metadata key 'llama.attention.head_count_kv' has 3 entries; 4 are valid, one a layer");
  EXPECT_THAT(kv({4, 4, 4, 4, 4}), HasSubstr("has 5 entries"));
  EXPECT_THAT(kv({0, 0, 0, 0}), HasSubstr("0 for every layer"));
  EXPECT_THAT(kv({8, 8, 3, 8}), HasSubstr("is 3 for layer 2, which does not divide 8 query heads"));
  EXPECT_THAT(kv({8, 8, 16, 8}), HasSubstr("is 16 for layer 2"));
  EXPECT_THAT(kv({8, 1u << 20, 8, 8}), HasSubstr("is 1048576 for layer 1; valid are 0 to 65536"));
  EXPECT_THAT(Keys{}.set_array<std::int32_t>("attention.head_count_kv", {8, -1, 8, 8}).refusal(), HasSubstr("is -1 for layer 1"));
  EXPECT_THAT(Keys{}.set_array<float>("attention.head_count_kv", {8, 8, 8, 8}).refusal(), HasSubstr("an array of floats"));
  EXPECT_THAT(Keys{}.set("attention.head_count_kv", 0u).refusal(), HasSubstr("0 for every layer"));
  EXPECT_THAT(Keys{}.set("attention.head_count_kv", "two"sv).refusal(), HasSubstr("holds a string"));
}

TEST(Geometry, WrongSizesAreRefusedByKeyAndValue) {
  for (const std::string key : {"block_count", "embedding_length", "context_length", "attention.head_count", "feed_forward_length",
                                "vocab_size", "attention.key_length", "rope.dimension_count"}) {
    EXPECT_THAT(Keys{}.set(key, 0u).refusal(), testing::AllOf(HasSubstr("'llama." + key + "' is 0"), HasSubstr("valid are")));
    EXPECT_THAT(Keys{}.set(key, 0xffffffffu).refusal(), HasSubstr("'llama." + key + "' is 4294967295"));
    EXPECT_THAT(Keys{}.set(key, "many"sv).refusal(), HasSubstr("'llama." + key + "' holds a string"));
    EXPECT_THAT(Keys{}.set(key, std::int64_t{-1}).refusal(), HasSubstr("'llama." + key + "' is -1"));
  }
  for (const std::string key : {"block_count", "embedding_length", "context_length", "attention.head_count"})
    EXPECT_EQ(Keys{}.drop(key).refusal(), "test.gguf: metadata key 'llama." + key + "' is missing");
}

TEST(Geometry, HeadsThatDoNotFitAreRefused) {
  EXPECT_THAT(Keys{}.set("embedding_length", 516u).refusal(), HasSubstr("is 516, which 8 heads do not divide"));
  EXPECT_EQ(Keys{}.set("embedding_length", 516u).set("attention.key_length", 64u).read()->head_dim, 64u);
  EXPECT_THAT(Keys{}.set("attention.key_length", 192u).set("attention.value_length", 128u).refusal(ErrorCode::unsupported),
              HasSubstr("value_length' is 128, but a key has 192"));
  EXPECT_THAT(Keys{}.set_array<std::uint32_t>("attention.head_count", {8, 8, 4, 8}).refusal(ErrorCode::unsupported),
              HasSubstr("is 4 for layer 2"));
  EXPECT_EQ(Keys{}.set_array<std::uint32_t>("attention.head_count", {8, 8, 8, 8}).read()->heads, 8u);
}

TEST(Geometry, FeedForwardMayDifferByLayerOrBeAbsent) {
  EXPECT_EQ(Keys{}.set_array<std::uint32_t>("feed_forward_length", {512, 0, 2048, 512}).read()->feed_forward, 2048u);
  EXPECT_EQ(Keys{}.drop("feed_forward_length").read()->feed_forward, 0u);
  EXPECT_THAT(Keys{}.set_array<std::uint32_t>("feed_forward_length", {512}).refusal(), HasSubstr("has 1 entries"));
}

TEST(GeometryRope, PairingFollowsTheArchitecture) {
  EXPECT_EQ(rope_pairing("llama"), RopePairing::interleaved);
  EXPECT_EQ(rope_pairing("smollm3"), RopePairing::interleaved);
  for (const std::string_view halves : {"qwen2", "qwen3", "gemma3", "phi3", "starcoder2"})
    EXPECT_EQ(rope_pairing(halves), RopePairing::halves) << halves;
  EXPECT_EQ(rope_pairing("gpt2"), RopePairing::none);
  Keys qwen;
  qwen.architecture = "qwen2";
  EXPECT_EQ(qwen.read()->rope.pairing, RopePairing::halves);
}

TEST(GeometryRope, ScalingIsReadAndWrongOnesRefused) {
  const auto linear = Keys{}.set("rope.scaling.type", "linear"sv).set("rope.scaling.factor", 4.0f).read();
  ASSERT_TRUE(linear.ok());
  EXPECT_EQ(linear->rope.scaling, RopeScaling::linear);
  EXPECT_EQ(linear->rope.factor, 4);
  const auto yarn = Keys{}.set("rope.scaling.type", "yarn"sv).set("rope.scaling.original_context_length", 2048u).read();
  ASSERT_TRUE(yarn.ok());
  EXPECT_EQ(yarn->rope.scaling, RopeScaling::yarn);
  EXPECT_EQ(yarn->rope.original_context, 2048u);
  EXPECT_EQ(Keys{}.set("rope.scale_linear", 2.0f).read()->rope.scaling, RopeScaling::linear);
  EXPECT_EQ(Keys{}.set("rope.scaling.type", "none"sv).read()->rope.scaling, RopeScaling::none);
  EXPECT_EQ(Keys{}.set("rope.dimension_count", 32u).read()->rope.dim, 32u);
  EXPECT_THAT(Keys{}.set("rope.scaling.type", "magic"sv).refusal(ErrorCode::unsupported), HasSubstr("is 'magic'; offered are none"));
  EXPECT_THAT(Keys{}.set("rope.scaling.factor", 0.0f).refusal(), HasSubstr("is 0; a positive number"));
  EXPECT_THAT(Keys{}.set("rope.freq_base", -1.0f).refusal(), HasSubstr("is -1; a positive number"));
  EXPECT_THAT(Keys{}.set("rope.freq_base", std::nanf("")).refusal(), HasSubstr("is nan"));
  EXPECT_THAT(Keys{}.set("rope.dimension_count", 31u).refusal(), HasSubstr("is 31; an even number"));
  EXPECT_THAT(Keys{}.set("rope.dimension_count", 66u).refusal(), HasSubstr("is 66; valid are 1 to 64"));
}

TEST(GeometryVocabulary, TokensTableAndKeyAreWeighedAgainstEachOther) {
  const auto read = [](std::uint64_t rows, std::uint64_t row_width, std::vector<std::string_view> tokens) {
    GgufWriter writer;
    writer.value("general.architecture", "llama"sv).value("llama.block_count", 1u).value("llama.embedding_length", 8u);
    writer.value("llama.context_length", 16u).value("llama.attention.head_count", 1u);
    if (!tokens.empty()) writer.array("tokenizer.ggml.tokens", tokens);
    const std::vector<std::byte> data(rows * row_width * 4);
    if (rows > 0) writer.tensor("token_embd.weight", TensorType::f32, {row_width, rows}, data);
    const std::vector<std::byte> bytes = writer.bytes();
    const auto file = GgufFile::parse(bytes, "test.gguf");
    EXPECT_TRUE(file.ok());
    return ModelGeometry::from_gguf(*file);
  };
  EXPECT_EQ(read(0, 0, {"a", "b"})->vocabulary, 2u);
  EXPECT_EQ(read(3, 8, {})->vocabulary, 3u);
  EXPECT_EQ(read(3, 8, {"a", "b"})->vocabulary, 3u) << "padded tables have more rows than tokens";
  EXPECT_EQ(read(3, 8, {})->parameters, 24u);
  EXPECT_EQ(read(3, 8, {})->weight_bytes, 96u);
  EXPECT_TRUE(read(3, 8, {})->tied_head);
  EXPECT_THAT(read(1, 8, {"a", "b"}).error().message, HasSubstr("2 tokens, but tensor 'token_embd.weight' has only 1 rows"));
  EXPECT_THAT(read(2, 9, {}).error().message, HasSubstr("is [9, 2]; [8, vocabulary] is valid"));
  EXPECT_THAT(read(0, 0, {}).error().message, HasSubstr("no vocabulary"));
}

Keys of(std::string architecture, std::uint32_t layers) { return {.architecture = std::move(architecture), .layers = layers}; }

std::vector<std::uint32_t> windows(const Result<ModelGeometry>& geometry) {
  EXPECT_TRUE(geometry.ok()) << (geometry.ok() ? "" : geometry.error().message);
  std::vector<std::uint32_t> out;
  if (geometry.ok())
    for (const format::Reach& reach : geometry->reach) out.push_back(reach.window);
  return out;
}

TEST(GeometryWindow, LayersAreThoseOfTheArchitectureUnlessTheFileSays) {
  const auto window = [](Keys keys) { return keys.set("attention.sliding_window", 128u); };
  for (const char* architecture : {"gpt-oss", "gpt-oss-dense"})
    EXPECT_THAT(windows(window(of(architecture, 4)).read()), ElementsAre(128, 0, 128, 0));
  EXPECT_THAT(windows(window(of("olmo2", 5)).read()), ElementsAre(128, 128, 128, 0, 128));
  EXPECT_THAT(windows(window(of("llama", 2)).read()), ElementsAre(128, 128));
  EXPECT_THAT(windows(window(of("gemma3", 3)).set("attention.sliding_window_pattern", 2u).read()), ElementsAre(128, 0, 128));
  EXPECT_THAT(windows(window(of("qwen3", 3)).set_array<std::uint8_t>("attention.sliding_window_pattern", {0, 1, 1}).read()), ElementsAre(0, 128, 128));
  const auto unknown = window(of("qwen3", 2)).read();
  EXPECT_THAT(windows(unknown), ElementsAre(0, 0));
  EXPECT_FALSE(unknown->window_layers_known);
  EXPECT_EQ(unknown->window, 128u);
  EXPECT_THAT(windows(of("gemma3", 2).read()), ElementsAre(0, 0)) << "no window in the file";
  EXPECT_THAT(windows(of("llama", 2).set("attention.sliding_window", 4096u).read()), ElementsAre(0, 0)) << "as long as the context";
}

TEST(GeometryWindow, WrongPatternsAreRefused) {
  const auto pattern = [](auto values) {
    return of("gemma3", 3).set("attention.sliding_window", 128u).set_array("attention.sliding_window_pattern", values).refusal();
  };
  EXPECT_THAT(pattern(std::vector<std::uint32_t>{1, 0}), HasSubstr("'gemma3.attention.sliding_window_pattern' has 2 entries; 3 are valid, one a layer"));
  EXPECT_THAT(pattern(std::vector<std::uint32_t>{1, 0, 6}), HasSubstr("is 6 for layer 2; valid are 0 to 1"));
}

TEST(GeometryWindow, EachPairOfHeadsAndReachIsAGroup) {
  const auto geometry = of("gemma3", 5).set("attention.sliding_window", 128u).set("attention.sliding_window_pattern", 2u)
                            .set_array<std::uint32_t>("attention.head_count_kv", {2, 2, 1, 2, 2}).read();
  ASSERT_TRUE(geometry.ok()) << geometry.error().message;
  const format::KvGeometry kv = geometry->kv_geometry({}, 16);
  ASSERT_EQ(kv.groups.size(), 3u);
  EXPECT_THAT(kv.groups[0].layers, ElementsAre(0, 4));
  EXPECT_EQ(kv.groups[0].window, 128u);
  EXPECT_THAT(kv.groups[1].layers, ElementsAre(1, 3));
  EXPECT_EQ(kv.groups[1].window, 0u);
  EXPECT_THAT(kv.groups[2].layers, ElementsAre(2));
  EXPECT_EQ(kv.groups[2].kv_heads, 1u);
}

TEST(GeometryRope, WindowLayersMayTurnOtherwise) {
  const auto gemma = of("gemma3", 6).set("attention.sliding_window", 128u).set("rope.freq_base", 1e6f).set("rope.scaling.type", "linear"sv)
                         .set("rope.scaling.factor", 8.0f).read();
  ASSERT_TRUE(gemma.ok()) << gemma.error().message;
  EXPECT_EQ(gemma->rope.base, 1e6);
  EXPECT_EQ(gemma->window_rope.base, 10'000);
  EXPECT_EQ(gemma->window_rope.scaling, RopeScaling::none);
  EXPECT_EQ(gemma->layer_rope[0], LayerRope::window);
  EXPECT_EQ(gemma->layer_rope[5], LayerRope::full);
  EXPECT_EQ(of("gemma3", 6).set("rope.freq_base_swa", 500.0f).read()->window_rope.base, 500);
  // The window's rope stays where the context is so short that its reach is all of history.
  const auto shorter = of("gemma3", 6).set("attention.sliding_window", 8192u).read();
  EXPECT_EQ(shorter->layer_rope[0], LayerRope::window);
  EXPECT_EQ(shorter->reach[0].window, 0u);
  const auto llama = of("llama", 2).set("attention.sliding_window", 128u).read();
  EXPECT_EQ(llama->window_rope, llama->rope);
  const auto smollm = of("smollm3", 5).read();
  EXPECT_THAT(smollm->layer_rope, ElementsAre(LayerRope::full, LayerRope::full, LayerRope::full, LayerRope::none, LayerRope::full));
}

TEST(GeometryRope, YarnsNumbersAreReadAndOthersRefused) {
  const auto yarn = [] { return Keys{}.set("rope.scaling.type", "yarn"sv).set("rope.scaling.original_context_length", 2048u); };
  EXPECT_FALSE(yarn().read()->rope.attention_factor.has_value());
  EXPECT_EQ(yarn().read()->rope.beta_fast, 32);
  EXPECT_TRUE(yarn().read()->rope.whole_pairs);
  EXPECT_EQ(yarn().set("rope.scaling.yarn_beta_slow", 2.0f).read()->rope.beta_slow, 2);
  EXPECT_EQ(yarn().set("rope.scaling.yarn_attn_factor", 1.25f).read()->rope.attention_factor, 1.25);
  EXPECT_TRUE(yarn().set("rope.scaling.yarn_ext_factor", 1.0f).read().ok());
  EXPECT_THAT(yarn().set("rope.scaling.yarn_ext_factor", 0.5f).refusal(ErrorCode::unsupported), HasSubstr("yarn_ext_factor' is 0.5; with yarn only 1 is offered"));
  EXPECT_THAT(yarn().set("rope.scaling.yarn_log_multiplier", 0.1f).refusal(ErrorCode::unsupported), HasSubstr("with yarn only 0 is offered"));
  EXPECT_THAT(Keys{}.set("rope.scaling.type", "dynamic"sv).refusal(ErrorCode::unsupported),
              HasSubstr("is 'dynamic', whose angles change as a sequence grows"));
}

TEST(GeometryScales, AreThoseOfTheArchitecture) {
  const auto plain = Keys{}.read();
  EXPECT_EQ(plain->embedding_scale, 1);
  EXPECT_EQ(plain->attention_scale, 0);
  const auto granite = of("granite", 2).set("embedding_scale", 12.0f).set("residual_scale", 0.25f).set("attention.scale", 0.5f).set("logit_scale", 8.0f).read();
  EXPECT_EQ(granite->embedding_scale, 12);
  EXPECT_EQ(granite->residual_scale, 0.25);
  EXPECT_EQ(granite->attention_scale, 0.5);
  EXPECT_EQ(granite->logit_scale, 8);
  EXPECT_EQ(of("gemma3", 2).read()->embedding_scale, std::sqrt(512.0));
  EXPECT_EQ(of("gemma3", 62).read()->attention_scale, 1 / std::sqrt(512.0 / 8)) << "the 27B model";
}

struct RealModel {
  std::string file;
  std::uint32_t layers, heads, kv_heads, head_dim, vocabulary;
  bool tied;
};

// The models that scripts/fetch-model knows, if they are here.
TEST(GeometryRealModels, AreWhatTheirCardsSay) {
  const char* folder = std::getenv("KVASIR_MODELS");
  const std::filesystem::path models = folder != nullptr ? folder : KVASIR_SOURCE_DIR "/models";
  for (const RealModel& model : {RealModel{"SmolLM2-135M-Instruct-Q4_1.gguf", 30, 9, 3, 64, 49152, true},
                                 RealModel{"Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf", 24, 14, 2, 64, 151936, false},
                                 RealModel{"gemma-3-270m-Q4_K_M.gguf", 18, 4, 1, 256, 262144, true}}) {
    const std::filesystem::path path = models / model.file;
    if (!std::filesystem::exists(path)) continue;
    const auto file = GgufFile::open(path.string());
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto geometry = ModelGeometry::from_gguf(*file);
    ASSERT_TRUE(geometry.ok()) << geometry.error().message;
    EXPECT_EQ(geometry->layers, model.layers);
    EXPECT_EQ(geometry->heads, model.heads);
    EXPECT_EQ(geometry->kv_heads, std::vector<std::uint32_t>(model.layers, model.kv_heads));
    EXPECT_EQ(geometry->head_dim, model.head_dim);
    EXPECT_EQ(geometry->vocabulary, model.vocabulary);
    EXPECT_EQ(geometry->tied_head, model.tied);
  }
}

}  // namespace
}  // namespace kvasir::artifact
