// Models with another number of KV heads: which rows a head has, and what else stays.
#include "artifact/convert_heads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/tiny_model.hpp"

namespace kvasir::artifact {
namespace {

using test::TinyModelSpec;
using testing::HasSubstr;

constexpr std::uint32_t kHeads = 8, kHeadDim = 16, kWidth = 64;

TinyModelSpec spec(std::uint32_t kv_heads, const std::string& architecture = "llama") {
  TinyModelSpec out;
  out.architecture = architecture;
  out.heads = kHeads;
  out.kv_heads = kv_heads;
  out.head_dim = kHeadDim;
  out.width = kWidth;
  return out;
}

struct Written {
  ConvertedHeads told;
  std::vector<std::byte> bytes;
  std::optional<GgufFile> file;
};

Written convert(const GgufFile& from, std::uint32_t kv_heads, TensorType type = TensorType::f32) {
  Written out;
  const auto told = convert_heads(from, {kv_heads, type}, [&out](std::span<const std::byte> bytes) {
    out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
    return ok_status();
  });
  EXPECT_TRUE(told.ok()) << (told.ok() ? "" : told.error().message);
  if (!told.ok()) return out;
  out.told = *told;
  EXPECT_EQ(out.told.bytes, out.bytes.size());
  auto file = GgufFile::parse(out.bytes, "converted");
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
  if (file.ok()) out.file.emplace(std::move(*file));
  return out;
}

std::string refusal(const GgufFile& from, std::uint32_t kv_heads, TensorType type = TensorType::f16) {
  const auto told = convert_heads(from, {kv_heads, type}, [](std::span<const std::byte>) { return ok_status(); });
  return told.ok() ? "converted" : told.error().message;
}

std::vector<float> values_of(const GgufFile& file, std::string_view name) {
  const GgufTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) return {};
  std::uint64_t elements = 1;
  for (const std::uint64_t dim : tensor->dims) elements *= dim;
  std::vector<float> out(elements);
  dequantize(tensor->type, tensor->bytes, out);
  return out;
}

// Element c of row `row` of head `head` of a matrix of keys or values; of a bias c is 0.
float at(const std::vector<float>& values, std::size_t width, std::size_t head, std::size_t row, std::size_t c) {
  return values[(head * kHeadDim + row) * width + c];
}

TEST(ConvertHeads, MoreAreCopiesBesideTheirOriginal) {
  const test::TinyModel from = test::make_tiny_model(spec(2, "qwen2"));   // with biases
  const Written to = convert(from.file, 8);
  EXPECT_EQ(to.told.way, HeadsWay::repeated);
  EXPECT_EQ(to.told.from, 2u);
  EXPECT_EQ(to.told.to, 8u);
  EXPECT_EQ(ModelGeometry::from_gguf(*to.file)->kv_heads.front(), 8u);
  for (const auto& [name, width] : {std::pair<std::string, std::size_t>{"blk.1.attn_k.weight", kWidth}, {"blk.1.attn_v.weight", kWidth}, {"blk.1.attn_k.bias", 1}}) {
    const std::vector<float> before = values_of(from.file, name), after = values_of(*to.file, name);
    ASSERT_EQ(after.size(), 4 * before.size()) << name;
    for (std::size_t head = 0; head < 8; ++head) {
      for (std::size_t row = 0; row < kHeadDim; ++row) EXPECT_EQ(at(after, width, head, row, width - 1), at(before, width, head / 4, row, width - 1)) << name;
    }
  }
}

TEST(ConvertHeads, FewerAreMeansOfNeighbours) {
  const test::TinyModel from = test::make_tiny_model(spec(8));
  for (const std::uint32_t fewer : {4u, 2u, 1u}) {
    const Written to = convert(from.file, fewer);
    EXPECT_EQ(to.told.way, HeadsWay::pooled);
    const std::vector<float> before = values_of(from.file, "blk.0.attn_v.weight"), after = values_of(*to.file, "blk.0.attn_v.weight");
    ASSERT_EQ(after.size(), before.size() * fewer / 8);
    for (std::size_t head = 0; head < fewer; ++head) {
      for (std::size_t c = 0; c < kWidth; ++c) {
        double sum = 0;
        for (std::size_t one = 0; one < 8 / fewer; ++one) sum += at(before, kWidth, head * (8 / fewer) + one, 3, c);
        EXPECT_EQ(at(after, kWidth, head, 3, c), static_cast<float>(sum / (8 / fewer)));
      }
    }
  }
}

TEST(ConvertHeads, RepeatedThenPooledIsTheModelAgain) {
  const test::TinyModel from = test::make_tiny_model(spec(2));
  const Written more = convert(from.file, 4), again = convert(*more.file, 2), same = convert(from.file, 2);
  EXPECT_EQ(same.told.way, HeadsWay::same);
  EXPECT_EQ(again.bytes, same.bytes);
}

TEST(ConvertHeads, TheRestIsTheModels) {
  const test::TinyModel from = test::make_tiny_model(spec(2));
  const Written to = convert(from.file, 1);
  EXPECT_EQ(to.file->tensors().size(), from.file.tensors().size());
  for (const GgufTensor& tensor : from.file.tensors()) {
    const GgufTensor* after = to.file->find_tensor(tensor.name);
    ASSERT_NE(after, nullptr) << tensor.name;
    if (tensor.name.find("attn_k.") != tensor.name.npos || tensor.name.find("attn_v.") != tensor.name.npos) continue;
    EXPECT_EQ(values_of(*to.file, tensor.name), values_of(from.file, tensor.name)) << tensor.name;
    EXPECT_EQ(after->type, TensorType::f32);
  }
  for (const auto& [key, value] : from.file.metadata()) {
    if (key == "llama.attention.head_count_kv" || key == "general.file_type") continue;
    EXPECT_NE(to.file->find(key), nullptr) << key;
  }
  EXPECT_EQ(to.file->get_strings("tokenizer.ggml.tokens")->size(), from.file.get_strings("tokenizer.ggml.tokens")->size());
  for (const TensorType type : {TensorType::f16, TensorType::bf16}) {
    const Written half = convert(from.file, 2, type);
    EXPECT_EQ(half.file->find_tensor("blk.0.ffn_up.weight")->type, type);
    EXPECT_EQ(half.file->find_tensor("blk.0.attn_norm.weight")->type, TensorType::f32) << "vectors stay exact";
  }
}

TEST(ConvertHeads, WhatCannotBeIsNamed) {
  const test::TinyModel from = test::make_tiny_model(spec(4));
  EXPECT_THAT(refusal(from.file, 3), HasSubstr("kv-heads is 3; valid: multiples and divisors of its 4 KV heads that divide its 8 query heads: 1, 2, 4, 8"));
  EXPECT_THAT(refusal(from.file, 0), HasSubstr("kv-heads is 0"));
  EXPECT_THAT(refusal(from.file, 16), HasSubstr("kv-heads is 16"));
  EXPECT_THAT(refusal(from.file, 2, TensorType::q4_0), HasSubstr("the type is Q4_0; valid: F32, F16, BF16"));
  TinyModelSpec broken = spec(4);
  broken.without = "blk.1.attn_v.weight";
  EXPECT_THAT(refusal(test::make_tiny_model(broken).file, 2), HasSubstr("blk.1.attn_v.weight"));
  const auto stopped = convert_heads(from.file, {2, TensorType::f16}, [](std::span<const std::byte>) { return Status(Error{ErrorCode::io, "full"}); });
  EXPECT_EQ(stopped.error().message, "full");
}

}  // namespace
}  // namespace kvasir::artifact
