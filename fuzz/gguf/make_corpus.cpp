// Writes the GGUF fuzzer's seeds: small valid files that between them hold every value and tensor type.
//   make_corpus_gguf DIR
#include <cstdio>
#include <string>

#include "tests/support/gguf_writer.hpp"
#include "tests/support/random_weights.hpp"

namespace {

using namespace kvasir;  // NOLINT(google-build-using-namespace)
using artifact::TensorType;
using std::string_view_literals::operator""sv;
using test::GgufWriter;

GgufWriter every_value(std::uint32_t version) {
  GgufWriter writer;
  writer.version(version);
  writer.value("u8", std::uint8_t{1}).value("i8", std::int8_t{-1}).value("u16", std::uint16_t{1}).value("i16", std::int16_t{-1});
  writer.value("u32", 1u).value("i32", -1).value("u64", std::uint64_t{1}).value("i64", std::int64_t{-1});
  writer.value("f32", 0.5f).value("f64", 0.25).value("bool", true).value("text", "abc"sv).alignment(8);
  writer.array<std::uint8_t>("au8", {1}).array<std::int8_t>("ai8", {-1}).array<std::uint16_t>("au16", {1});
  writer.array<std::int16_t>("ai16", {-1}).array<std::uint32_t>("au32", {1}).array<std::int32_t>("ai32", {-1});
  writer.array<std::uint64_t>("au64", {1}).array<std::int64_t>("ai64", {-1}).array<float>("af32", {0.5f});
  writer.array<double>("af64", {0.25}).array<bool>("abool", {true, false}).array<std::string_view>("atext", {"a", "", "bc"});
  return writer;
}

GgufWriter model(std::string_view architecture, TensorType type) {
  const auto key = [&](std::string_view suffix) { return std::string(architecture) + "." + std::string(suffix); };
  GgufWriter writer;
  writer.value("general.architecture", architecture).value("general.name", "seed"sv);
  writer.value(key("block_count"), 2u).value(key("embedding_length"), 256u).value(key("context_length"), 64u);
  writer.value(key("feed_forward_length"), 256u).value(key("attention.head_count"), 4u);
  writer.array<std::uint32_t>(key("attention.head_count_kv"), {4, 2});
  writer.value(key("attention.key_length"), 64u).value(key("attention.value_length"), 64u);
  writer.value(key("attention.layer_norm_rms_epsilon"), 1e-5f).value(key("attention.sliding_window"), 0u);
  writer.value(key("rope.dimension_count"), 64u).value(key("rope.freq_base"), 1e4f);
  writer.value(key("rope.scaling.type"), "linear"sv).value(key("rope.scaling.factor"), 2.0f);
  writer.array<std::string_view>("tokenizer.ggml.tokens", {"a", "b"});
  PhiloxSequence random(1);
  writer.tensor("token_embd.weight", type, {256, 2}, test::random_weights(type, 512, 0.1f, random));
  return writer;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: make_corpus_gguf DIR\n");
    return 2;
  }
  const std::string folder = std::string(arguments[1]) + "/";
  for (const std::uint32_t version : {2u, 3u}) test::write_file(folder + "values-v" + std::to_string(version), every_value(version).bytes());
  for (const TensorType type : {TensorType::f32, TensorType::f16, TensorType::bf16, TensorType::q4_0, TensorType::q4_1, TensorType::q5_0,
                                TensorType::q5_1, TensorType::q8_0, TensorType::q2_k, TensorType::q3_k, TensorType::q4_k, TensorType::q5_k,
                                TensorType::q6_k, TensorType::iq4_nl, TensorType::iq4_xs})
    test::write_file(folder + "model-" + std::string(artifact::to_string(type)), model(type == TensorType::f16 ? "qwen2" : "llama", type).bytes());
  return 0;
}
