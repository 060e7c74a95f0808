#include "artifact/config_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "artifact/config_mixer.hpp"

namespace kvasir::artifact {
namespace {

using namespace shape_limits;

constexpr Range kHeadsRange{1, kMaxHeads}, kDimRange{1, kMaxHeadDim}, kTokensRange{1, kMaxTokens};

bool has_attention(LayerKind kind) {
  return kind == LayerKind::full || kind == LayerKind::window || kind == LayerKind::chunk;
}

class MemoryReader {
 public:
  MemoryReader(const ConfigFields& fields, const Family& family, const std::vector<LayerKind>& kinds, ModelShape& shape)
      : fields_(fields), family_(family), kinds_(kinds), shape_(shape) {}

  Status read() {
    if (count(LayerKind::full) + count(LayerKind::window) + count(LayerKind::chunk) > 0) KV_TRY(read_attention());
    for (std::size_t at = 0; at < kinds_.size(); ++at)
      if (kinds_[at] == LayerKind::feed_forward || kinds_[at] == LayerKind::experts)
        shape_.layers[at].memory = Memory::none;
    return read_mixers(fields_, kinds_, shape_);
  }

 private:
  std::size_t count(LayerKind kind) const { return static_cast<std::size_t>(std::count(kinds_.begin(), kinds_.end(), kind)); }

  Status read_attention() {
    KV_ASSIGN(shape_.heads, fields_.whole("heads", {"num_attention_heads", "n_head", "n_heads", "num_heads"}, kHeadsRange));
    KV_ASSIGN(const auto rank, fields_.find_whole("k_dim", {"kv_lora_rank"}, kDimRange));
    if (rank) {
      KV_TRY(read_latent(*rank));
    } else if (fields_.has("compress_ratios")) {
      KV_TRY(read_compressed());
    } else {
      KV_TRY(read_rows());
      KV_TRY(read_rows_of_kind());
      KV_TRY(read_gate());
    }
    KV_TRY(read_windows());
    return read_sharing();
  }

  template <class Set>
  void each(Set set) {
    for (std::size_t at = 0; at < kinds_.size(); ++at)
      if (has_attention(kinds_[at])) set(at, shape_.layers[at]);
  }

  Result<std::uint32_t> head_dim() const {
    KV_ASSIGN(const auto given, fields_.find_whole("head_dim", {"head_dim", "attention_head_dim", "kv_channels"}, kDimRange));
    if (given) return *given;
    const std::uint32_t dim = shape_.width / shape_.heads;
    if (shape_.width % shape_.heads != 0 || dim > kMaxHeadDim)
      return fields_.bad_words("head_dim", "missing",
                         fmt::format("a whole number from 1 to {}, for a width of {} over {} heads is none", kMaxHeadDim,
                                     shape_.width, shape_.heads));
    shape_.said_by["head_dim"] = fmt::format("{} / {}", shape_.said_by["width"], shape_.said_by["heads"]);
    return dim;
  }

  Error not_a_divisor(std::string_view name, std::uint32_t kv_heads) const {
    return fields_.bad(name, nlohmann::json(kv_heads), fmt::format("a divisor of {} query heads", shape_.heads));
  }

  // KV heads of every layer: a number, a list with one a layer, or what a family's flags imply; absent = query heads.
  Result<std::vector<std::uint32_t>> kv_heads() const {
    const auto layers = shape_.layers.size();
    KV_ASSIGN(const bool one, is_multi_query());
    if (one) return std::vector<std::uint32_t>(layers, 1);
    const auto name = fields_.first_of({"num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads",
                                        "multi_query_group_num", "attn_config.kv_n_heads"});
    if (!name) {
      shape_.said_by["kv_heads"] = shape_.said_by["heads"];
      return std::vector<std::uint32_t>(layers, shape_.heads);
    }
    std::vector<std::uint32_t> heads;
    if (fields_.find(*name)->is_array()) {
      KV_ASSIGN(heads, fields_.whole_list("kv_heads", *name, layers, {0, kMaxHeads}));
    } else {
      KV_ASSIGN(const auto scalar, fields_.whole("kv_heads", {*name}, kHeadsRange));
      heads.assign(layers, scalar);
    }
    for (const std::uint32_t of_layer : heads)
      if (of_layer != 0 && shape_.heads % of_layer != 0) return not_a_divisor(*name, of_layer);
    return heads;
  }

  // One KV head by a flag: Falcon (unless its new decoder), GPT-BigCode, MPT.
  Result<bool> is_multi_query() const {
    const bool falcon = family_.name == "falcon";
    KV_ASSIGN(const auto new_decoder, fields_.find_flag("", "new_decoder_architecture"));
    if (new_decoder.value_or(false)) return false;
    KV_ASSIGN(const auto flag, fields_.find_flag("kv_heads", "multi_query"));
    if (flag.value_or(falcon || family_.name == "gpt_bigcode")) return true;
    KV_ASSIGN(const auto kind, fields_.find_text("", "attn_config.attn_type"));
    return kind.value_or("") == "multiquery_attention";
  }

  Status read_rows() {
    KV_ASSIGN(const std::uint32_t k_dim, head_dim());
    KV_ASSIGN(const std::uint32_t v_dim, fields_.whole_or("v_dim", {"v_head_dim"}, kDimRange, k_dim));
    KV_ASSIGN(const auto heads, kv_heads());
    each([&](std::size_t at, LayerShape& layer) {
      if (heads[at] == 0) {
        layer.memory = Memory::none;
        return;
      }
      layer.kv_heads = heads[at];
      layer.k_dim = k_dim;
      layer.v_dim = v_dim;
    });
    return ok_status();
  }

  struct OfKind {
    LayerKind kind;
    std::string_view kv_heads, k_dim, v_dim;  // field names
  };

  // Fields for the layers of one kind alone: MiMo's window layers, Gemma 4's full ones.
  Status read_rows_of_kind() {
    KV_TRY(override_rows({LayerKind::window, "swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim"}));
    if (count(LayerKind::window) == 0) return ok_status();
    KV_ASSIGN(const auto alike, fields_.find_flag("", "attention_k_eq_v"));
    const std::string_view heads = alike.value_or(true) ? "num_global_key_value_heads" : "num_key_value_heads";
    return override_rows({LayerKind::full, heads, "global_head_dim", "global_head_dim"});
  }

  Status override_rows(const OfKind& of) {
    KV_ASSIGN(const auto heads, fields_.find_whole("", {of.kv_heads}, kHeadsRange));
    KV_ASSIGN(const auto k_dim, fields_.find_whole("", {of.k_dim}, kDimRange));
    KV_ASSIGN(const auto v_dim, fields_.find_whole("", {of.v_dim}, kDimRange));
    if (heads && shape_.heads % *heads != 0) return not_a_divisor(of.kv_heads, *heads);
    for (std::size_t at = 0; at < kinds_.size(); ++at) {
      LayerShape& layer = shape_.layers[at];
      if (kinds_[at] != of.kind || layer.memory != Memory::attention) continue;
      layer.kv_heads = heads.value_or(layer.kv_heads);
      layer.k_dim = k_dim.value_or(layer.k_dim);
      layer.v_dim = v_dim.value_or(layer.v_dim);
    }
    return ok_status();
  }

  // A gate as wide as the attention's output (Qwen3-Next and after).
  Status read_gate() {
    KV_ASSIGN(const auto flag, fields_.find_flag("", "attn_output_gate"));
    if (!flag.value_or(family_.name == "qwen3_next")) return ok_status();
    each([&](std::size_t, LayerShape& layer) {
      layer.mixer_parameters = std::uint64_t{shape_.width} * shape_.heads * layer.v_dim;
    });
    return ok_status();
  }

  Status read_latent(std::uint32_t rank) {
    KV_ASSIGN(shape_.rope_dim, fields_.whole("rope_dim", {"qk_rope_head_dim"}, kDimRange));
    KV_ASSIGN(shape_.nope_dim, fields_.whole("nope_dim", {"qk_nope_head_dim"}, kDimRange));
    KV_ASSIGN(shape_.value_dim, fields_.whole("value_dim", {"v_head_dim"}, kDimRange));
    KV_ASSIGN(shape_.query_rank, fields_.whole_or("query_rank", {"q_lora_rank"}, {0, kMaxWidth}, 0));
    KV_ASSIGN(const auto index_dim, fields_.whole_or("index_dim", {"index_head_dim"}, kDimRange, 0));
    KV_ASSIGN(const auto index_heads, fields_.whole_or("", {"index_n_heads"}, kHeadsRange, 0));
    if (rank + shape_.rope_dim > kMaxHeadDim)
      return fields_.bad("kv_lora_rank", nlohmann::json(rank), fmt::format("at most {}", kMaxHeadDim - shape_.rope_dim));
    each([&](std::size_t, LayerShape& layer) {
      set_latent(layer, rank + shape_.rope_dim, index_dim);
      layer.mixer_parameters = indexer_parameters(index_heads, index_dim);
    });
    return ok_status();
  }

  static void set_latent(LayerShape& layer, std::uint32_t row, std::uint32_t index_dim) {
    layer.memory = Memory::latent;
    layer.kv_heads = 1;
    layer.k_dim = row;
    layer.index_dim = index_dim;
  }

  // Its queries come from the query's latent, its keys and head weights from the hidden state.
  std::uint64_t indexer_parameters(std::uint64_t heads, std::uint64_t dim) const {
    const std::uint64_t from = shape_.query_rank == 0 ? shape_.width : shape_.query_rank;
    return dim == 0 ? 0 : from * heads * dim + shape_.width * (dim + heads);
  }

  // DeepSeek-V4: one row that is K and V at once. Ratio 0: in a window alone; else a row for that many tokens, and the last
  // tokens of the window in rows of their own. The least ratio has an index over its rows. The list may go on for the
  // layers that predict further tokens, which are not counted here.
  Status read_compressed() {
    constexpr std::string_view kRatios = "compress_ratios";
    KV_ASSIGN(const auto row, fields_.whole("k_dim", {"head_dim"}, kDimRange));
    KV_ASSIGN(const auto window, fields_.whole("window", {"sliding_window"}, kTokensRange));
    KV_ASSIGN(const auto ratios, fields_.whole_list("merged", kRatios, std::nullopt, {0, kMaxTokens}));
    KV_ASSIGN(const auto further, fields_.whole_or("", {"num_nextn_predict_layers"}, {0, kMaxLayers}, 0));
    KV_ASSIGN(const auto index_dim, fields_.whole_or("index_dim", {"index_head_dim"}, kDimRange, 0));
    const std::size_t layers = shape_.layers.size();
    if (ratios.size() != layers && ratios.size() != layers + further)
      return fields_.bad_words(kRatios, fmt::format("a list of {} entries", ratios.size()),
                         fmt::format("a list of {} entries, one a layer", layers));
    std::uint32_t least = 0;
    for (std::size_t at = 0; at < layers; ++at)
      if (ratios[at] > 1 && (least == 0 || ratios[at] < least)) least = ratios[at];
    KV_ASSIGN(const std::uint64_t weights, compressed_parameters(row));
    each([&](std::size_t at, LayerShape& layer) {
      const std::uint32_t ratio = ratios[at];
      set_latent(layer, row, ratio == least && least != 0 ? index_dim : 0);
      layer.merged = std::max(ratio, 1u);
      if (ratio == 0) layer.window = window;
      if (ratio > 1) layer.recent = window;
      layer.mixer_parameters = weights;
    });
    return ok_status();
  }

  // Queries and output, both through latents; the output's in groups.
  Result<std::uint64_t> compressed_parameters(std::uint64_t row) const {
    KV_ASSIGN(const std::uint64_t groups, fields_.whole_or("", {"o_groups"}, kHeadsRange, 1));
    KV_ASSIGN(const std::uint64_t rank, fields_.whole_or("", {"o_lora_rank"}, kDimRange, 0));
    KV_ASSIGN(const std::uint64_t query_rank, fields_.whole_or("", {"q_lora_rank"}, {0, kMaxWidth}, 0));
    const std::uint64_t all = shape_.heads * row, in = shape_.width;
    const std::uint64_t query = query_rank == 0 ? in * all : query_rank * (in + all);
    return query + (rank == 0 ? all * in : rank * all + groups * rank * in);
  }

  Status read_windows() {
    if (fields_.has("compress_ratios")) return ok_status();
    KV_ASSIGN(const auto window, length_of(LayerKind::window, {"sliding_window", "sliding_window_size"}));
    KV_ASSIGN(const auto chunk, length_of(LayerKind::chunk, {"attention_chunk_size"}));
    each([&](std::size_t at, LayerShape& layer) {
      const std::uint32_t tokens = kinds_[at] == LayerKind::window ? window : kinds_[at] == LayerKind::chunk ? chunk : 0;
      if (tokens >= shape_.context) return;
      layer.window = tokens;
      layer.chunked = tokens != 0 && kinds_[at] == LayerKind::chunk;
    });
    return ok_status();
  }

  Result<std::uint32_t> length_of(LayerKind kind, FieldNames names) const {
    if (count(kind) == 0) return 0u;
    return fields_.whole(kind == LayerKind::window ? "window" : "chunk", names, kTokensRange);
  }

  // num_kv_shared_layers (Gemma 3n): the last layers read an earlier one's rows and keep none; their queries and outputs
  // are weights all the same.
  Status read_sharing() {
    const auto layers = static_cast<std::uint32_t>(shape_.layers.size());
    KV_ASSIGN(const auto shared, fields_.whole_or("", {"num_kv_shared_layers"}, {0, layers - 1}, 0));
    for (std::size_t at = layers - shared; at < layers; ++at) {
      LayerShape& layer = shape_.layers[at];
      if (layer.memory != Memory::attention) continue;
      const std::uint64_t weights = std::uint64_t{shape_.width} * shape_.heads * (layer.k_dim + layer.v_dim);
      layer = LayerShape{.memory = Memory::none, .mixer_parameters = layer.mixer_parameters + weights};
    }
    return ok_status();
  }

  const ConfigFields& fields_;
  const Family& family_;
  const std::vector<LayerKind>& kinds_;
  ModelShape& shape_;
};

}  // namespace

Status read_memory(const ConfigFields& fields, const Family& family, const std::vector<LayerKind>& kinds, ModelShape& shape) {
  return MemoryReader(fields, family, kinds, shape).read();
}

}  // namespace kvasir::artifact
