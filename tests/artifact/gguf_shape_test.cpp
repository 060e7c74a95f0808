#include "artifact/gguf_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "artifact/parameter_count.hpp"
#include "format/block_layout.hpp"
#include "tests/support/gguf_writer.hpp"

namespace kvasir::artifact {
namespace {

using test::GgufWriter;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// A header of common keys and those of `more`, whose keys are written without the architecture.
struct Header {
  std::string architecture;
  std::vector<std::pair<std::string, std::uint32_t>> numbers;
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> lists = {};

  Result<ModelShape> read() const {
    GgufWriter writer;
    writer.value<std::string_view>("general.architecture", architecture);
    const std::vector<std::pair<std::string, std::uint32_t>> common = {
        {"block_count", 4}, {"embedding_length", 512}, {"context_length", 4096}, {"feed_forward_length", 1024},
        {"attention.head_count", 8}, {"vocab_size", 1000}};
    const auto given = [&](const std::string& suffix) {
      const auto named = [&](const auto& entry) { return entry.first == suffix; };
      return std::any_of(numbers.begin(), numbers.end(), named) || std::any_of(lists.begin(), lists.end(), named);
    };
    for (const auto& [suffix, value] : common)
      if (!given(suffix)) writer.value(architecture + "." + suffix, value);
    for (const auto& [suffix, value] : numbers) writer.value(architecture + "." + suffix, value);
    for (const auto& [suffix, values] : lists) writer.array(architecture + "." + suffix, values);
    const std::vector<std::byte> bytes = writer.bytes();
    const auto file = GgufFile::parse(bytes, "test.gguf");
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
    return shape_of(*file);
  }

  ModelShape shape() const {
    auto shape = read();
    EXPECT_TRUE(shape.ok()) << (shape.ok() ? "" : shape.error().message);
    return shape.ok() ? *shape : ModelShape{};
  }

  std::string refusal() const {
    const auto shape = read();
    return shape.ok() ? "not refused" : shape.error().message;
  }
};

template <class T>
std::vector<T> each(const ModelShape& shape, T LayerShape::*member) {
  std::vector<T> values;
  for (const LayerShape& layer : shape.layers) values.push_back(layer.*member);
  return values;
}

// The planner must not differ from the engine: both take the geometry's windows. Of Qwen it does not say which layers have one.
TEST(GgufShape, KeepsWhatTheEngineAllocates) {
  for (const char* architecture : {"llama", "qwen2", "qwen3"}) {
    const ModelShape shape = Header{architecture, {{"attention.head_count_kv", 2}, {"attention.sliding_window", 128}}}.shape();
    const std::uint32_t window = architecture == std::string_view("llama") ? 128 : 0;
    EXPECT_EQ(shape.family, architecture);
    std::uint64_t elements = 0;
    for (const LayerShape& layer : shape.layers) {
      EXPECT_EQ(layer, (LayerShape{.kv_heads = 2, .k_dim = 64, .v_dim = 64, .window = window, .feed_forward = 1024}));
      elements += std::uint64_t{layer.kv_heads} * (layer.k_dim + layer.v_dim);
    }
    EXPECT_EQ(elements, 4u * 2 * 2 * 64);
    EXPECT_EQ(shape.said_by.at("kv_heads"), std::string(architecture) + ".attention.head_count_kv");
  }
}

TEST(GgufShape, OfTheTinyModelItCountsItsTensors) {
  const auto file = GgufFile::open(std::string(KVASIR_SOURCE_DIR) + "/tests/data/quality/tiny-llama-gqa.gguf");
  ASSERT_TRUE(file.ok());
  const auto geometry = ModelGeometry::from_gguf(*file);
  ASSERT_TRUE(geometry.ok());
  const auto shape = shape_of(*file, *geometry);
  ASSERT_TRUE(shape.ok()) << shape.error().message;
  EXPECT_EQ(shape->parameters, geometry->parameters);
  EXPECT_EQ(shape->weight_bits, 8.0 * static_cast<double>(geometry->weight_bytes) / static_cast<double>(geometry->parameters));
  EXPECT_EQ(counted_parameters(*shape), geometry->parameters);
  std::uint64_t bytes = 0, elements = 0;
  for (const format::CacheGroup& group : geometry->kv_geometry({}, 16).groups)
    bytes += format::BlockLayout::create(group)->bytes_per_token();
  for (const LayerShape& layer : shape->layers) elements += std::uint64_t{layer.kv_heads} * (layer.k_dim + layer.v_dim);
  EXPECT_EQ(bytes, elements * 2) << "f16";
}

TEST(GgufShape, WindowsWhereTheArchitectureHasThem) {
  const auto windows = [](const char* architecture, std::uint32_t window) {
    return each(Header{architecture, {{"attention.sliding_window", window}}}.shape(), &LayerShape::window);
  };
  EXPECT_THAT(windows("gemma2", 128), ElementsAre(128, 0, 128, 0));
  EXPECT_THAT(windows("gemma3", 128), Each(128u));
  EXPECT_THAT(windows("cohere2", 128), ElementsAre(128, 128, 128, 0));
  EXPECT_THAT(windows("gemma2", 4096), Each(0u)) << "as long as the context";
  EXPECT_THAT(windows("phi3", 128), Each(128u));
  EXPECT_THAT(windows("qwen3", 128), Each(0u)) << "not known where: an upper bound";
}

TEST(GgufShape, LatentsWithoutGeometry) {
  const std::vector<std::pair<std::string, std::uint32_t>> common = {
      {"attention.kv_lora_rank", 512}, {"rope.dimension_count", 64}, {"attention.q_lora_rank", 1536},
      {"expert_count", 16}, {"expert_used_count", 4}, {"expert_feed_forward_length", 128}, {"expert_shared_count", 1},
      {"leading_dense_block_count", 1}};
  Header older{"deepseek2", common};
  older.numbers.insert(older.numbers.end(), {{"attention.key_length", 192}, {"attention.value_length", 128}});
  Header newer{"deepseek2", common};
  newer.numbers.insert(newer.numbers.end(), {{"attention.key_length", 576}, {"attention.value_length", 512},
                                             {"attention.key_length_mla", 192}, {"attention.value_length_mla", 128},
                                             {"attention.head_count_kv", 1}});
  for (const Header& header : {older, newer}) {
    const ModelShape shape = header.shape();
    EXPECT_THAT(each(shape, &LayerShape::memory), Each(Memory::latent));
    EXPECT_THAT(each(shape, &LayerShape::k_dim), Each(576u));
    EXPECT_THAT(each(shape, &LayerShape::v_dim), Each(0u));
    EXPECT_THAT(each(shape, &LayerShape::experts), ElementsAre(0, 16, 16, 16));
    EXPECT_THAT(each(shape, &LayerShape::feed_forward), ElementsAre(1024, 0, 0, 0));
    EXPECT_EQ(shape.nope_dim, 128u);
    EXPECT_EQ(shape.value_dim, 128u);
    EXPECT_EQ(shape.query_rank, 1536u);
    EXPECT_EQ(shape.experts_per_token, 4u);
    EXPECT_EQ(shape.layers[1].shared_experts, 1u);
  }
}

TEST(GgufShape, HybridsKeepStates) {
  const ModelShape jamba = Header{"jamba", {{"ssm.inner_size", 1024}, {"ssm.state_size", 16}, {"ssm.conv_kernel", 4}},
                                  {{"attention.head_count_kv", {0, 4, 0, 0}}}}.shape();
  EXPECT_THAT(each(jamba, &LayerShape::memory),
              ElementsAre(Memory::recurrent, Memory::attention, Memory::recurrent, Memory::recurrent));
  EXPECT_THAT(each(jamba, &LayerShape::state_elements), ElementsAre(1024 * 16 + 1024 * 3, 0, 19456, 19456));
  EXPECT_EQ(jamba.layers[0].state_bytes, 4u);
  const ModelShape nemotron = Header{"nemotron_h", {{"ssm.inner_size", 1024}, {"ssm.state_size", 16}, {"ssm.conv_kernel", 4}, {"ssm.group_count", 2}},
                                     {{"attention.head_count_kv", {0, 0, 4, 0}}, {"feed_forward_length", {0, 2048, 0, 2048}}}}.shape();
  EXPECT_THAT(each(nemotron, &LayerShape::memory), ElementsAre(Memory::recurrent, Memory::none, Memory::attention, Memory::none));
  EXPECT_EQ(nemotron.layers[0].state_elements, 1024u * 16 + (1024 + 2 * 2 * 16) * 3);
  EXPECT_FALSE(nemotron.gated);
  const ModelShape qwen = Header{"qwen3next", {{"ssm.inner_size", 1024}, {"ssm.state_size", 128}, {"ssm.conv_kernel", 4}, {"ssm.group_count", 4}}}.shape();
  EXPECT_THAT(each(qwen, &LayerShape::memory),
              ElementsAre(Memory::recurrent, Memory::recurrent, Memory::recurrent, Memory::attention));
}

TEST(GgufShape, RefusesWhatContradicts) {
  EXPECT_THAT((Header{"deepseek2", {{"attention.kv_lora_rank", 0}}}.refusal()),
              HasSubstr("metadata key 'deepseek2.attention.kv_lora_rank' is 0; valid are 1 to 65536"));
  EXPECT_THAT((Header{"deepseek2", {{"attention.kv_lora_rank", 512}, {"rope.dimension_count", 64}, {"attention.key_length", 32}, {"attention.value_length", 32}}}.refusal()),
              HasSubstr("'deepseek2.attention.key_length' is 32; valid are 64 to 65536"));
  EXPECT_THAT((Header{"llama", {{"expert_count", 8}, {"expert_used_count", 9}}}.refusal()),
              HasSubstr("'llama.expert_used_count' is 9; valid are 1 to 8"));
  EXPECT_THAT((Header{"llama", {{"attention.head_count_kv", 3}}}.refusal()), HasSubstr("does not divide 8 query heads"));
  EXPECT_THAT((Header{"jamba", {{"ssm.inner_size", 0}}, {{"attention.head_count_kv", {0, 4, 0, 0}}}}.refusal()),
              HasSubstr("'jamba.ssm.inner_size' is 0; valid are 1 to"));
}

}  // namespace
}  // namespace kvasir::artifact
