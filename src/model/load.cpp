// Reads a model file into packed weights: which tensors an architecture needs, their shapes, and the packing.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "kernels/pack.hpp"
#include "model/architecture.hpp"
#include "model/encoding.hpp"
#include "model/model.hpp"
#include "model/offered.hpp"
#include "model/rope_table.hpp"
#include "model/weights.hpp"
#include "platform/allocated_bytes.hpp"
#include "platform/thread_pool.hpp"

namespace kvasir::model {
namespace {

using artifact::GgufFile;
using artifact::GgufTensor;
using artifact::TensorType;
using kernels::SourceEncoding;

// Loads one model file; holds what every step of it needs.
class Loader {
 public:
  Loader(const GgufFile& file, const artifact::ModelGeometry& geometry, const Architecture& architecture, const ModelOptions& options)
      : file_(file), g_(geometry), arch_(architecture), context_(options.context != 0 ? options.context : geometry.context),
        pool_(options.threads) {}

  // matrix_bytes: of all packed matrices together, by the footprint.
  Status load(Weights& w, std::uint64_t matrix_bytes) {
    w.memory = platform::AlignedBuffer(matrix_bytes);
    free_ = w.memory.data();
    end_ = free_ + w.memory.bytes();
    KV_TRY(load_ends(w));
    w.layers.resize(g_.layers);
    for (std::uint32_t l = 0; l < g_.layers; ++l) KV_TRY(load_layer(l, w.layers[l]));
    KV_TRY(load_ropes(w));
    return check_all_read();
  }

 private:
  Result<const GgufTensor*> tensor(const std::string& name, std::span<const std::uint64_t> dims) {
    const GgufTensor* found = file_.find_tensor(name);
    if (found == nullptr)
      return Error{ErrorCode::bad_input, fmt::format("{}: tensor '{}' is missing; architecture {} needs it with shape [{}]",
                                                     file_.name(), name, g_.architecture, fmt::join(dims, ", "))};
    if (found->dims.size() != dims.size() || !std::equal(dims.begin(), dims.end(), found->dims.begin()))
      return Error{ErrorCode::bad_input, fmt::format("{}: tensor '{}' has shape [{}], expected [{}]", file_.name(), name,
                                                     fmt::join(found->dims, ", "), fmt::join(dims, ", "))};
    read_.insert(found->name);
    return found;
  }

  Result<std::vector<float>> vector(const std::string& name, std::uint64_t n) {
    const std::uint64_t dims[] = {n};
    KV_ASSIGN(const GgufTensor* t, tensor(name, dims));
    std::vector<float> values(n);
    artifact::dequantize(t->type, t->bytes, values);
    return values;
  }

  Result<Linear> linear(const std::string& name, std::uint64_t k, std::uint64_t n) {
    const std::uint64_t dims[] = {k, n};
    KV_ASSIGN(const GgufTensor* t, tensor(name, dims));
    const SourceEncoding encoding = encoding_of(t->type);
    Linear out;
    out.matrix = {.form = kernels::form_of(encoding), .n = n, .k = k};
    const std::size_t bytes = kernels::packed_bytes(out.matrix.form, n, k);   // whole cache lines
    KV_CHECK(bytes <= static_cast<std::size_t>(end_ - free_), "the footprint counts every matrix that is loaded");
    std::byte* const tiles_to = free_;
    free_ += bytes;
    out.matrix.tiles = tiles_to;
    const std::size_t row_bytes = k / artifact::block_elements(t->type) * artifact::block_bytes(t->type);
    const std::size_t tile_bytes = kernels::tile_bytes(out.matrix.form, k);
    pool_.run([&](std::size_t thread) {
      const platform::Range tiles = platform::part(out.matrix.count(), thread, pool_.threads());
      for (std::size_t i = tiles.begin; i < tiles.end; ++i) {
        const std::size_t first = i * kernels::kTileOutputs;
        kernels::pack_tile(encoding, t->bytes.data() + first * row_bytes, row_bytes, std::min(kernels::kTileOutputs, n - first),
                           k, tiles_to + i * tile_bytes);
      }
    });
    return out;
  }

  // Appends `name`.weight (and its bias where the architecture has one) to a projection.
  Status append(Projection& to, const std::string& name, std::uint64_t k, std::uint64_t n, bool bias) {
    KV_ASSIGN(Linear part, linear(name + ".weight", k, n));
    if (bias) {
      KV_ASSIGN(part.bias, vector(name + ".bias", n));
    }
    to.parts.push_back(std::move(part));
    return ok_status();
  }

  Status load_ends(Weights& w) {
    KV_ASSIGN(w.embedding, linear("token_embd.weight", g_.width, g_.vocabulary));
    KV_ASSIGN(w.output_norm, vector("output_norm.weight", g_.width));
    if (!g_.tied_head) return append(w.head, "output", g_.width, g_.vocabulary, false);
    w.head.parts.emplace_back();
    w.head.parts.back().matrix = w.embedding.matrix;   // a view: the memory stays the embedding's
    return ok_status();
  }

  Status load_layer(std::uint32_t index, Layer& layer) {
    const std::string p = fmt::format("blk.{}.", index);
    KV_TRY(load_attention(p, index, layer));
    KV_TRY(load_feed_forward(p, layer));
    if (arch_.norms == Norms::before) return ok_status();
    KV_ASSIGN(layer.post_attention_norm, vector(p + "post_attention_norm.weight", g_.width));
    KV_ASSIGN(layer.post_feed_forward_norm, vector(p + "post_ffw_norm.weight", g_.width));
    return ok_status();
  }

  Status load_attention(const std::string& p, std::uint32_t index, Layer& layer) {
    const std::uint64_t q = std::uint64_t{g_.heads} * g_.head_dim;
    const std::uint64_t kv = std::uint64_t{g_.kv_heads[index]} * g_.head_dim;
    if (arch_.norms != Norms::after) {
      KV_ASSIGN(layer.attention_norm, vector(p + "attn_norm.weight", g_.width));
    }
    if (arch_.fused) {
      KV_TRY(append(layer.qkv, p + "attn_qkv", g_.width, q + 2 * kv, arch_.qkv_bias));
    } else {
      KV_TRY(append(layer.qkv, p + "attn_q", g_.width, q, arch_.qkv_bias));
      KV_TRY(append(layer.qkv, p + "attn_k", g_.width, kv, arch_.qkv_bias));
      KV_TRY(append(layer.qkv, p + "attn_v", g_.width, kv, arch_.qkv_bias));
    }
    if (arch_.qk_norm != QkNorm::none) {
      const bool head = arch_.qk_norm == QkNorm::head;
      KV_ASSIGN(layer.q_norm, vector(p + "attn_q_norm.weight", head ? g_.head_dim : q));
      KV_ASSIGN(layer.k_norm, vector(p + "attn_k_norm.weight", head ? g_.head_dim : kv));
    }
    if (arch_.sinks) {
      KV_ASSIGN(layer.sinks, vector(p + "attn_sinks.weight", g_.heads));
    }
    return append(layer.attention_out, p + "attn_output", q, g_.width, arch_.output_bias);
  }

  Status load_feed_forward(const std::string& p, Layer& layer) {
    if (arch_.norms != Norms::after) {
      KV_ASSIGN(layer.feed_forward_norm, vector(fmt::format("{}{}.weight", p, arch_.feed_forward_norm), g_.width));
    }
    if (arch_.fused) {
      KV_TRY(append(layer.gate_up, p + "ffn_up", g_.width, 2 * std::uint64_t{g_.feed_forward}, false));
    } else {
      KV_TRY(append(layer.gate_up, p + "ffn_gate", g_.width, g_.feed_forward, false));
      KV_TRY(append(layer.gate_up, p + "ffn_up", g_.width, g_.feed_forward, false));
    }
    return append(layer.down, p + "ffn_down", g_.feed_forward, g_.width, false);
  }

  // The factors of a rope that has them in a tensor: Llama 3's, or those of longrope for the context that is asked for.
  Result<RopeTable> load_rope(const artifact::Rope& rope) {
    const std::uint32_t pairs = rope.dim / 2;
    if (rope.scaling == artifact::RopeScaling::longrope) {
      KV_ASSIGN(const std::vector<float> long_factors, vector("rope_factors_long.weight", pairs));
      KV_ASSIGN(const std::vector<float> short_factors, vector("rope_factors_short.weight", pairs));
      const bool beyond = context_ > rope.original_context;
      const std::string name = fmt::format("{}: rope_factors_{}.weight", file_.name(), beyond ? "long" : "short");
      return make_rope_table(rope, beyond ? long_factors : short_factors, name);
    }
    constexpr const char* kFactors = "rope_freqs.weight";
    std::vector<float> factors;
    if (rope.scaling != artifact::RopeScaling::none && file_.find_tensor(kFactors) != nullptr) {
      KV_ASSIGN(factors, vector(kFactors, pairs));
    }
    return make_rope_table(rope, factors, fmt::format("{}: {}", file_.name(), kFactors));
  }

  Status load_ropes(Weights& w) {
    for (const artifact::Rope& rope : ropes_of(g_)) {
      KV_ASSIGN(RopeTable table, load_rope(rope));
      w.ropes.push_back(std::move(table));
    }
    return ok_status();
  }

  // A tensor that no step reads (a bias that this architecture does not have here, say) would change the answers of the
  // engine that made the file: leaving it out silently would be a wrong answer.
  Status check_all_read() const {
    for (const GgufTensor& t : file_.tensors()) {
      if (!read_.contains(t.name))
        return Error{ErrorCode::unsupported, fmt::format("{}: tensor '{}' has no place in the forward pass of {}", file_.name(), t.name,
                                                         g_.architecture)};
    }
    return ok_status();
  }

  const GgufFile& file_;
  const artifact::ModelGeometry& g_;
  const Architecture& arch_;
  std::uint32_t context_;       // positions that will be asked for
  platform::ThreadPool pool_;
  std::byte* free_ = nullptr;   // what is left of Weights::memory
  std::byte* end_ = nullptr;
  std::set<std::string_view> read_;   // names, in the file's memory
};

}  // namespace

Model::Model() : weights_(std::make_unique<Weights>()) {}
Model::~Model() = default;

std::vector<std::string> Model::architectures() {
  std::vector<std::string> names;
  for (const Architecture& row : architecture_table()) names.emplace_back(row.name);
  return names;
}

Result<std::shared_ptr<const Model>> Model::load(const artifact::GgufFile& file, const ModelOptions& options) {
  KV_ASSIGN(artifact::ModelGeometry geometry, artifact::ModelGeometry::from_gguf(file));
  KV_TRY(check_offered(file, geometry));
  std::shared_ptr<Model> model(new Model());
  model->geometry_ = std::move(geometry);
  model->options_ = options;
  Loader loader(file, model->geometry_, *find_architecture(model->geometry_.architecture), options);
  model->footprint_ = weight_footprint(file, model->geometry_);
  const auto before = platform::allocated_bytes();
  KV_TRY(loader.load(*model->weights_, model->footprint_.matrices));
  const auto after = platform::allocated_bytes();
  model->allocated_ = before && after ? *after - *before : model->footprint_.total();
  return std::shared_ptr<const Model>(std::move(model));
}

}  // namespace kvasir::model
