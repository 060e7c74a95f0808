#include "tests/support/tiny_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/prng.hpp"
#include "tests/support/gguf_writer.hpp"
#include "tests/support/random_weights.hpp"
#include "tests/support/tiny_vocabulary.hpp"

namespace kvasir::test {
namespace {

using artifact::TensorType;

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

class TinyModelWriter {
 public:
  explicit TinyModelWriter(const TinyModelSpec& spec) : spec_(spec) {
    constexpr std::string_view kKnown[] = {"llama", "qwen2", "qwen3", "gemma3", "gpt-oss"};
    KV_CHECK(std::find(std::begin(kKnown), std::end(kKnown), spec.architecture) != std::end(kKnown), "a known architecture");
    KV_CHECK(spec.kv_heads_by_layer.empty() || spec.kv_heads_by_layer.size() == spec.layers, "KV heads of each layer, or one number");
    KV_CHECK(spec.kv_heads > 0 && spec.heads % spec.kv_heads == 0, "KV heads divide the query heads");
  }

  std::vector<std::byte> bytes() {
    put_geometry();
    put_tokenizer();
    put_tensors();
    return writer_.bytes();
  }

 private:
  std::string key(std::string_view suffix) const { return fmt::format("{}.{}", spec_.architecture, suffix); }

  void put_geometry() {
    writer_.value<std::string_view>("general.architecture", spec_.architecture);
    writer_.value<std::string_view>("general.name", "tiny");
    writer_.value(key("block_count"), spec_.layers);
    writer_.value(key("context_length"), spec_.context);
    writer_.value(key("embedding_length"), spec_.width);
    writer_.value(key("feed_forward_length"), spec_.feed_forward);
    writer_.value(key("attention.head_count"), spec_.heads);
    if (spec_.kv_heads_by_layer.empty()) writer_.value(key("attention.head_count_kv"), spec_.kv_heads);
    else writer_.array(key("attention.head_count_kv"), spec_.kv_heads_by_layer);
    writer_.value(key("attention.key_length"), spec_.head_dim);
    writer_.value(key("attention.value_length"), spec_.head_dim);
    writer_.value(key("attention.layer_norm_rms_epsilon"), static_cast<float>(spec_.norm_epsilon));
    writer_.value(key("rope.dimension_count"), spec_.head_dim);
    writer_.value(key("rope.freq_base"), static_cast<float>(spec_.rope_base));
    if (spec_.window != 0) writer_.value(key("attention.sliding_window"), spec_.window);
    if (spec_.window_period != 0) writer_.value(key("attention.sliding_window_pattern"), spec_.window_period);
  }

  void put_tokenizer() {
    const TinyVocabulary vocabulary = tiny_vocabulary(spec_.vocabulary);
    const auto views = [](const std::vector<std::string>& texts) {
      return std::vector<std::string_view>(texts.begin(), texts.end());
    };
    writer_.value<std::string_view>("tokenizer.ggml.model", "gpt2");
    writer_.value<std::string_view>("tokenizer.ggml.pre", "smollm");
    writer_.array("tokenizer.ggml.tokens", views(vocabulary.tokens));
    writer_.array("tokenizer.ggml.token_type", vocabulary.types);
    writer_.array("tokenizer.ggml.merges", views(vocabulary.merges));
    writer_.value("tokenizer.ggml.bos_token_id", kTinyImStart);
    writer_.value("tokenizer.ggml.eos_token_id", kTinyImEnd);
    writer_.value("tokenizer.ggml.unknown_token_id", kTinyEndOfText);
    writer_.value("tokenizer.ggml.add_bos_token", false);
    writer_.value("tokenizer.chat_template", kChatTemplate);
  }

  // Each tensor draws from a stream of its own, so that one tensor's type does not change the others' values.
  void put_matrix(const std::string& name, TensorType type, std::uint32_t inputs, std::uint32_t outputs) {
    PhiloxSequence random(spec_.seed, stream_++);
    const float deviation = 1 / std::sqrt(static_cast<float>(inputs));
    KV_CHECK(inputs % artifact::block_elements(type) == 0, name + ": rows are whole blocks of the tensor type");
    const std::vector<std::byte> bytes = random_weights(type, std::size_t{inputs} * outputs, deviation, random);
    if (name != spec_.without) writer_.tensor(name, type, {inputs, outputs}, bytes);
  }

  void put_vector(const std::string& name, std::uint32_t size, float mean, float deviation) {
    PhiloxSequence random(spec_.seed, stream_++);
    const std::vector<std::byte> bytes = random_floats(size, mean, deviation, random);
    if (name != spec_.without) writer_.tensor(name, TensorType::f32, {size}, bytes);
  }

  void put_norm(const std::string& name, std::uint32_t size) { put_vector(name, size, 1, 0.1f); }

  void put_tensors() {
    put_matrix("token_embd.weight", spec_.embedding, spec_.width, spec_.vocabulary);
    for (std::uint32_t layer = 0; layer < spec_.layers; ++layer) put_layer(layer);
    put_norm("output_norm.weight", spec_.width);
    if (!spec_.tied_head) put_matrix("output.weight", spec_.head, spec_.width, spec_.vocabulary);
    if (!spec_.extra.empty()) put_norm(spec_.extra, spec_.width);
    if (spec_.rope_factors) put_vector("rope_freqs.weight", spec_.head_dim / 2, 4.5f, 2);
  }

  bool is(std::string_view architecture) const { return spec_.architecture == architecture; }

  void put_layer(std::uint32_t layer) {
    const std::string prefix = fmt::format("blk.{}.", layer);
    put_attention(prefix, spec_.kv_heads_by_layer.empty() ? spec_.kv_heads : spec_.kv_heads_by_layer[layer]);
    put_norm(prefix + (is("gpt-oss") ? "post_attention_norm.weight" : "ffn_norm.weight"), spec_.width);
    put_matrix(prefix + "ffn_gate.weight", spec_.feed_forward_type, spec_.width, spec_.feed_forward);
    put_matrix(prefix + "ffn_up.weight", spec_.feed_forward_type, spec_.width, spec_.feed_forward);
    put_matrix(prefix + "ffn_down.weight", spec_.feed_forward_type, spec_.feed_forward, spec_.width);
    if (is("gemma3")) {
      put_norm(prefix + "post_attention_norm.weight", spec_.width);
      put_norm(prefix + "post_ffw_norm.weight", spec_.width);
    }
  }

  void put_attention(const std::string& prefix, std::uint32_t kv_heads) {
    const std::uint32_t queries = spec_.heads * spec_.head_dim, keys = kv_heads * spec_.head_dim;
    put_norm(prefix + "attn_norm.weight", spec_.width);
    put_matrix(prefix + "attn_q.weight", spec_.attention, spec_.width, queries);
    put_matrix(prefix + "attn_k.weight", spec_.attention, spec_.width, keys);
    put_matrix(prefix + "attn_v.weight", spec_.attention, spec_.width, keys);
    put_matrix(prefix + "attn_output.weight", spec_.attention, queries, spec_.width);
    if (is("qwen2") || is("gpt-oss")) {
      put_vector(prefix + "attn_q.bias", queries, 0, 0.2f);
      put_vector(prefix + "attn_k.bias", keys, 0, 0.2f);
      put_vector(prefix + "attn_v.bias", keys, 0, 0.2f);
    }
    if (is("gpt-oss")) {
      put_vector(prefix + "attn_output.bias", spec_.width, 0, 0.2f);
      put_vector(prefix + "attn_sinks.weight", spec_.heads, 0, 1);
    }
    if (is("qwen3") || is("gemma3")) {
      put_norm(prefix + "attn_q_norm.weight", spec_.head_dim);
      put_norm(prefix + "attn_k_norm.weight", spec_.head_dim);
    }
  }

  const TinyModelSpec& spec_;
  GgufWriter writer_;
  std::uint64_t stream_ = 0;
};

}  // namespace

TinyModelSpec TinyModelSpec::mha() { return {}; }

TinyModelSpec TinyModelSpec::gqa() {
  TinyModelSpec spec;
  spec.layers = 3;
  spec.kv_heads = 2;
  spec.tied_head = true;
  return spec;
}

TinyModelSpec TinyModelSpec::mqa() {
  TinyModelSpec spec;
  spec.kv_heads = 1;
  spec.head_dim = 24;
  return spec;
}

TinyModelSpec TinyModelSpec::window_and_full() {
  TinyModelSpec spec;
  spec.architecture = "gemma3";
  spec.layers = 4;
  spec.kv_heads = 2;
  spec.tied_head = true;
  spec.rope_base = 1'000'000;
  spec.window = 40;
  spec.window_period = 3;
  return spec;
}

TinyModelSpec TinyModelSpec::window_only() {
  TinyModelSpec spec;
  spec.kv_heads = 2;
  spec.window = 24;
  return spec;
}

TinyModelSpec TinyModelSpec::sinks() {
  TinyModelSpec spec;
  spec.architecture = "gpt-oss";
  spec.kv_heads = 2;
  spec.window = 20;
  return spec;
}

TinyModelSpec TinyModelSpec::mixed_heads() {
  TinyModelSpec spec;
  spec.layers = 4;
  spec.kv_heads_by_layer = {4, 1, 4, 2};
  spec.window = 40;
  spec.window_period = 2;
  return spec;
}

TinyModelSpec TinyModelSpec::k_quants(artifact::TensorType type) {
  TinyModelSpec spec = gqa();
  spec.layers = 2;
  spec.width = 256;
  spec.head_dim = 64;
  spec.feed_forward = 256;
  spec.embedding = spec.attention = spec.feed_forward_type = spec.head = type;
  return spec;
}

std::vector<std::byte> tiny_model_bytes(const TinyModelSpec& spec) { return TinyModelWriter(spec).bytes(); }

TinyModel make_tiny_model(const TinyModelSpec& spec) {
  std::vector<std::byte> bytes = tiny_model_bytes(spec);
  auto file = artifact::GgufFile::parse(bytes, "tiny.gguf");
  KV_CHECK(file.ok(), file.ok() ? std::string() : file.error().message);
  return {std::move(bytes), std::move(file).value()};
}

void write_tiny_model(const TinyModelSpec& spec, const std::string& path) { write_file(path, tiny_model_bytes(spec)); }

}  // namespace kvasir::test
