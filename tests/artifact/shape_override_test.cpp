#include "artifact/shape_override.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "artifact/config_json.hpp"
#include "artifact/known_models.hpp"
#include "artifact/parameter_count.hpp"

namespace kvasir::artifact {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

ModelShape plain() {
  return *shape_from_config(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8,
      "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 4096,
      "sliding_window": 100, "sliding_window_pattern": 2})", "c.json");
}

void set(ModelShape& shape, std::string_view key, std::string_view value) {
  const Status status = override_field(shape, key, value);
  EXPECT_TRUE(status.ok()) << key << "=" << value << ": " << (status.ok() ? "" : status.error().message);
}

std::string refusal(ModelShape shape, std::string_view key, std::string_view value) {
  const ModelShape before = shape;
  const Status status = override_field(shape, key, value);
  EXPECT_EQ(shape.layers, before.layers) << "unchanged";
  EXPECT_EQ(shape.said_by, before.said_by) << "unchanged";
  return status.ok() ? "accepted" : status.error().message;
}

template <class T>
std::vector<T> each(const ModelShape& shape, T LayerShape::*member) {
  std::vector<T> values;
  for (const LayerShape& layer : shape.layers) values.push_back(layer.*member);
  return values;
}

TEST(ShapeOverride, SetsEveryLayerThatTheKeyIsAbout) {
  ModelShape shape = plain();
  set(shape, "kv_heads", "4");
  set(shape, "head_dim", "16");
  set(shape, "v_dim", "32");
  set(shape, "window", "50");
  EXPECT_THAT(each(shape, &LayerShape::kv_heads), Each(4u));
  EXPECT_THAT(each(shape, &LayerShape::k_dim), Each(16u));
  EXPECT_THAT(each(shape, &LayerShape::v_dim), Each(32u));
  EXPECT_THAT(each(shape, &LayerShape::window), ElementsAre(50, 0, 50, 0)) << "those that have one";
  EXPECT_EQ(shape.said_by.at("kv_heads"), "--set");
  set(shape, "window", "0");
  EXPECT_THAT(each(shape, &LayerShape::window), Each(0u));
  set(shape, "window", "70");
  EXPECT_THAT(each(shape, &LayerShape::window), Each(70u)) << "all if none has one";
  EXPECT_TRUE(check_shape(shape, "c.json").ok());
}

TEST(ShapeOverride, LayersAreCutOrGoOn) {
  ModelShape shape = plain();
  set(shape, "layers", "7");
  EXPECT_THAT(each(shape, &LayerShape::window), ElementsAre(100, 0, 100, 0, 100, 0, 100));
  set(shape, "layers", "1");
  EXPECT_THAT(shape.layers, SizeIs(1));
}

TEST(ShapeOverride, LatentsAndStates) {
  ModelShape v3 = *known_model("DeepSeek-V3");
  set(v3, "k_dim", "320");
  set(v3, "index_dim", "64");
  EXPECT_THAT(each(v3, &LayerShape::k_dim), Each(320u));
  EXPECT_THAT(each(v3, &LayerShape::index_dim), Each(64u));
  EXPECT_THAT(refusal(v3, "kv_heads", "8"), HasSubstr("'kv_heads' applies to no layer of DeepSeek-V3 / R1"));
  EXPECT_THAT(refusal(v3, "state_bytes", "2"), HasSubstr("'state_bytes' applies to no layer"));
  ModelShape jamba = *known_model("Jamba-v0.1");
  set(jamba, "state_bytes", "4");
  EXPECT_EQ(jamba.layers[0].state_bytes, 4u);
  EXPECT_EQ(jamba.layers[4].state_bytes, 2u) << "an attention layer";
}

TEST(ShapeOverride, CountsWeightsAnewWhereItCan) {
  ModelShape shape = plain();
  const std::uint64_t before = shape.parameters;
  set(shape, "feed_forward", "256");
  EXPECT_EQ(shape.parameters, before + 4 * 3 * 64 * 128);
  set(shape, "gated", "false");
  EXPECT_EQ(shape.parameters, before + 4 * 64 * (2 * 256 - 3 * 128));
  set(shape, "experts", "8");
  set(shape, "expert_width", "32");
  set(shape, "experts_per_token", "2");
  EXPECT_EQ(shape.parameters, counted_parameters(shape));
  EXPECT_EQ(shape.active_parameters, count_parameters(shape)->active);
  set(shape, "parameters", "1.5B");
  set(shape, "layers", "8");
  EXPECT_EQ(shape.parameters, 1'500'000'000u) << "by hand stays";
  ModelShape known = *known_model("Llama-3-8B");
  set(known, "kv_heads", "32");
  EXPECT_EQ(known.parameters, 8'030'000'000u) << "published stays";
  set(known, "layers", "16");
  EXPECT_EQ(known.parameters, 0u) << "unknown";
}

TEST(ShapeOverride, AValueThatIsThereAlreadyChangesNoWeight) {
  ModelShape known = *known_model("Llama-3-8B");
  for (const auto& [key, value] : std::vector<std::pair<const char*, const char*>>{
           {"layers", "32"}, {"width", "4096"}, {"vocabulary", "128256"}, {"gated", "true"}, {"tied_head", "false"}}) {
    set(known, key, value);
    EXPECT_EQ(known.parameters, 8'030'000'000u) << key;
    EXPECT_EQ(known.said_by.at(key), "--set");
  }
}

TEST(ShapeOverride, ExpertsComeBeforeTheirWidths) {
  for (const char* key : {"shared_experts", "expert_width"})
    EXPECT_THAT(refusal(plain(), key, "2"), HasSubstr("applies to no layer of llama; valid: after experts=N"));
}

TEST(ShapeOverride, NumbersOfWeights) {
  ModelShape shape = plain();
  for (const auto& [text, value] : std::vector<std::pair<std::string, std::uint64_t>>{
           {"8030000000", 8'030'000'000}, {"8.03B", 8'030'000'000}, {"135M", 135'000'000}, {"1T", 1'000'000'000'000}, {"5K", 5000}}) {
    set(shape, "parameters", text);
    EXPECT_EQ(shape.parameters, value) << text;
  }
  set(shape, "active_parameters", "1M");
  EXPECT_EQ(shape.active_parameters, 1'000'000u);
  set(shape, "weight_bits", "4.5");
  EXPECT_EQ(shape.weight_bits, 4.5);
  set(shape, "tied_head", "true");
  EXPECT_TRUE(shape.tied_head);
}

TEST(ShapeOverride, RefusesByKeyAndValue) {
  struct Row {
    const char *key, *value, *message;
  };
  for (const Row& row :
       {Row{"kvheads", "4", "unknown key 'kvheads'; did you mean 'kv_heads'? (valid: layers, width, heads, kv_heads"},
        Row{"", "4", "unknown key ''"}, Row{"layers", "0", "'layers' is '0'; valid: whole numbers from 1 to 65536"},
        Row{"layers", "-1", "'layers' is '-1'; valid: whole"}, Row{"layers", "70000", "'layers' is '70000'; valid: whole"},
        Row{"layers", "4.0", "'layers' is '4.0'; valid: whole"}, Row{"layers", "", "'layers' is ''; valid: whole"},
        Row{"layers", " 4", "'layers' is ' 4'; valid: whole"}, Row{"layers", "4x", "'layers' is '4x'; valid: whole"},
        Row{"kv_heads", "99999999999999999999", "'kv_heads' is '99999999999999999999'; valid: whole"},
        Row{"tied_head", "1", "'tied_head' is '1'; valid: true, false"}, Row{"weight_bits", "0", "'weight_bits' is '0'; valid: numbers above 0 to 64"},
        Row{"weight_bits", "nan", "'weight_bits' is 'nan'"}, Row{"weight_bits", "65", "'weight_bits' is '65'"},
        Row{"parameters", "0", "'parameters' is '0'; valid: a number of weights such as 8030000000 or 8.03B"},
        Row{"parameters", "B", "'parameters' is 'B'"}, Row{"parameters", "-1B", "'parameters' is '-1B'"},
        Row{"parameters", "1e30", "'parameters' is '1e30'"}, Row{"parameters", "1.5", "'parameters' is '1.5'"},
        Row{"parameters", "99999T", "'parameters' is '99999T'"}, Row{"parameters", "", "'parameters' is ''"}})
    EXPECT_THAT(refusal(plain(), row.key, row.value), HasSubstr(row.message)) << row.key << "=" << row.value;
}

TEST(ShapeOverride, KeysThatDoNotFitTogetherAreFoundAfterwards) {
  ModelShape shape = plain();
  set(shape, "heads", "6");
  set(shape, "kv_heads", "4");
  EXPECT_THAT(check_shape(shape, "--set").error().message,
              HasSubstr("--set: kv_heads of layer 0 is 4, which does not divide 6 query heads; a divisor is valid"));
  set(shape, "kv_heads", "3");
  EXPECT_TRUE(check_shape(shape, "--set").ok());
}

TEST(ShapeOverride, TheKeysAreListed) {
  EXPECT_THAT(override_keys(), testing::Contains("kv_heads"));
  EXPECT_THAT(override_keys(), SizeIs(23));
}

TEST(ParameterCount, TellsTheClassesApart) {
  const auto count = count_parameters(plain());
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(count->embedding, 64'000u);
  EXPECT_EQ(count->head, 64'000u);
  EXPECT_EQ(count->attention, 4u * (64 * 8 * 16 + 64 * 2 * 16));
  EXPECT_EQ(count->feed_forward, 4u * 3 * 64 * 128);
  EXPECT_EQ(count->experts, 0u);
  EXPECT_EQ(count->norms, 64u * 9);
  EXPECT_EQ(count->total, count->embedding + count->head + count->attention + count->feed_forward + count->norms);
  EXPECT_EQ(count->active, count->total);
}

TEST(ParameterCount, SaysWhenItCannotAndWhenItOverflows) {
  const auto unknown = count_parameters(*known_model("Llama-3-8B"));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::unsupported);
  ModelShape huge = plain();
  huge.width = huge.layers[0].expert_width = shape_limits::kMaxWidth;
  huge.layers[0].experts = shape_limits::kMaxExperts;
  huge.layers.assign(shape_limits::kMaxLayers, huge.layers[0]);
  const auto overflow = count_parameters(huge);
  ASSERT_FALSE(overflow.ok());
  EXPECT_EQ(overflow.error().code, ErrorCode::bad_input);
  EXPECT_EQ(counted_parameters(huge), 0u);
}

}  // namespace
}  // namespace kvasir::artifact
