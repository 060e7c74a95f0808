// Reads a model file into packed weights: which tensors an architecture needs, their shapes, and the packing.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/fixed_math.hpp"
#include "kernels/pack.hpp"
#include "model/architecture.hpp"
#include "model/encoding.hpp"
#include "model/model.hpp"
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
  Loader(const GgufFile& file, const artifact::ModelGeometry& geometry, const Architecture& architecture, std::size_t threads)
      : file_(file), g_(geometry), arch_(architecture), pool_(threads) {}

  // matrix_bytes: of all packed matrices together, by the footprint.
  Status load(Weights& w, std::uint64_t matrix_bytes) {
    w.memory = platform::AlignedBuffer(matrix_bytes);
    free_ = w.memory.data();
    end_ = free_ + w.memory.bytes();
    KV_TRY(load_ends(w));
    w.layers.resize(g_.layers);
    for (std::uint32_t l = 0; l < g_.layers; ++l) KV_TRY(load_layer(l, w.layers[l]));
    KV_TRY(load_rope(w));
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
    const std::uint64_t q = std::uint64_t{g_.heads} * g_.head_dim;
    const std::uint64_t kv = std::uint64_t{g_.kv_heads[index]} * g_.head_dim;
    KV_ASSIGN(layer.attention_norm, vector(p + "attn_norm.weight", g_.width));
    KV_TRY(append(layer.qkv, p + "attn_q", g_.width, q, arch_.qkv_bias));
    KV_TRY(append(layer.qkv, p + "attn_k", g_.width, kv, arch_.qkv_bias));
    KV_TRY(append(layer.qkv, p + "attn_v", g_.width, kv, arch_.qkv_bias));
    if (arch_.qk_norm) {
      KV_ASSIGN(layer.q_norm, vector(p + "attn_q_norm.weight", g_.head_dim));
      KV_ASSIGN(layer.k_norm, vector(p + "attn_k_norm.weight", g_.head_dim));
    }
    KV_TRY(append(layer.attention_out, p + "attn_output", q, g_.width, false));
    KV_ASSIGN(layer.feed_forward_norm, vector(p + "ffn_norm.weight", g_.width));
    KV_TRY(append(layer.gate_up, p + "ffn_gate", g_.width, g_.feed_forward, false));
    KV_TRY(append(layer.gate_up, p + "ffn_up", g_.width, g_.feed_forward, false));
    return append(layer.down, p + "ffn_down", g_.feed_forward, g_.width, false);
  }

  // Angle a position of pair i: base^(-2i/dim), divided by the file's factor for that pair (Llama 3) or by the linear one.
  Status load_rope(Weights& w) {
    const std::uint32_t pairs = g_.rope.dim / 2;
    std::vector<float> factors(pairs, 1.0f);
    if (file_.find_tensor("rope_freqs.weight") != nullptr) {
      KV_ASSIGN(factors, vector("rope_freqs.weight", pairs));
    }
    const double linear = g_.rope.scaling == artifact::RopeScaling::linear ? g_.rope.factor : 1.0;
    w.rope_frequencies.resize(pairs);
    for (std::uint32_t i = 0; i < pairs; ++i) {
      if (!(factors[i] > 0.0f) || !(static_cast<double>(factors[i]) < 1e6))
        return Error{ErrorCode::bad_input, fmt::format("{}: rope_freqs.weight[{}] is {}; a factor is positive and below 1e6",
                                                       file_.name(), i, factors[i])};
      w.rope_frequencies[i] = pow_f64(g_.rope.base, -2.0 * i / g_.rope.dim) / (static_cast<double>(factors[i]) * linear);
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
  platform::ThreadPool pool_;
  std::byte* free_ = nullptr;   // what is left of Weights::memory
  std::byte* end_ = nullptr;
  std::set<std::string_view> read_;   // names, in the file's memory
};

Status check_offered(const GgufFile& file, const artifact::ModelGeometry& g) {
  if (find_architecture(g.architecture) == nullptr)
    return Error{ErrorCode::unsupported, fmt::format("{}: general.architecture '{}' has no forward pass here; offered are {}",
                                                     file.name(), g.architecture, fmt::join(Model::architectures(), ", "))};
  if (g.window != 0)
    return Error{ErrorCode::unsupported, fmt::format("{}: a sliding window of {} tokens is not offered yet", file.name(), g.window)};
  if (g.rope.scaling == artifact::RopeScaling::yarn)
    return Error{ErrorCode::unsupported, fmt::format("{}: rope scaling 'yarn' is not offered yet; offered are none, linear and llama3", file.name())};
  if (g.rope.pairing == artifact::RopePairing::none || g.rope.dim == 0 || g.rope.dim % 2 != 0 || g.rope.dim > g.head_dim)
    return Error{ErrorCode::bad_input, fmt::format("{}: rope.dimension_count is {}; an even number up to the head dimension {} is needed",
                                                   file.name(), g.rope.dim, g.head_dim)};
  if (g.head_dim % 8 != 0)
    return Error{ErrorCode::unsupported, fmt::format("{}: head dimension {} is not a multiple of 8", file.name(), g.head_dim)};
  for (const std::uint32_t heads : g.kv_heads) {
    if (heads != g.kv_heads.front())
      return Error{ErrorCode::unsupported, fmt::format("{}: attention.head_count_kv differs between layers; that is not offered yet", file.name())};
  }
  return ok_status();
}

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
  Loader loader(file, model->geometry_, *find_architecture(model->geometry_.architecture), options.threads);
  model->footprint_ = weight_footprint(file, model->geometry_);
  const auto before = platform::allocated_bytes();
  KV_TRY(loader.load(*model->weights_, model->footprint_.matrices));
  const auto after = platform::allocated_bytes();
  model->allocated_ = before && after ? *after - *before : model->footprint_.total();
  return std::shared_ptr<const Model>(std::move(model));
}

}  // namespace kvasir::model
