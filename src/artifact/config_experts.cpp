#include "artifact/config_experts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::artifact {
namespace {

using namespace shape_limits;

constexpr Range kWidthRange{1, kMaxWidth}, kLayersRange{0, kMaxLayers}, kExpertsRange{0, kMaxExperts};
const FieldNames kExpertsNames = {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts",
                                  "ffn_config.moe_num_experts"};

class FeedForwardReader {
 public:
  FeedForwardReader(const ConfigFields& fields, const Family& family, const std::vector<LayerKind>& kinds, ModelShape& shape)
      : fields_(fields), family_(family), kinds_(kinds), shape_(shape) {}

  Status read() {
    shape_.gated = family_.gated;
    KV_TRY(read_dense());
    KV_TRY(read_experts());
    if (experts_.experts > 1) KV_TRY(read_sparse_layers());
    const bool alone = blocks_stand_alone();
    for (std::size_t at = 0; at < kinds_.size(); ++at) fill(at, alone);
    return ok_status();
  }

 private:
  // Widths of dense blocks, one a layer: a number, a list (Gemma 3n), four times the width where an ungated family
  // leaves it out.
  Status read_dense() {
    const auto layers = kinds_.size();
    const auto name = fields_.first_of({"intermediate_size_mlp", "intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner",
                                        "ffn_config.ffn_hidden_size"});
    if (name && fields_.find(*name)->is_array()) {
      KV_ASSIGN(dense_, fields_.whole_list("feed_forward", *name, layers, {0, kMaxWidth}));
      return ok_status();
    }
    if (name) {
      KV_ASSIGN(const auto width, fields_.whole("feed_forward", {*name}, {0, kMaxWidth}));
      dense_.assign(layers, width);
      return ok_status();
    }
    KV_ASSIGN(const auto ratio, fields_.find_number("expansion_ratio", 1.0 / 64, 64));
    const double times = ratio.value_or(family_.gated ? 0 : 4);
    const double width = std::min(times * shape_.width, double{kMaxWidth});
    dense_.assign(layers, static_cast<std::uint32_t>(width));
    return ok_status();
  }

  Status read_experts() {
    KV_ASSIGN(experts_.experts, fields_.whole_or("experts", kExpertsNames, kExpertsRange, 0));
    if (experts_.experts <= 1) return ok_status();
    KV_ASSIGN(shape_.experts_per_token,
              fields_.whole_or("experts_per_token",
                               {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_k",
                                "moe_topk", "ffn_config.moe_top_k"},
                               {1, experts_.experts}, 0));
    KV_ASSIGN(experts_.expert_width,
              fields_.whole("expert_width",
                            {"moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size",
                             "ffn_config.ffn_hidden_size"},
                            kWidthRange));
    return read_shared();
  }

  // Experts that see every token: a number of them, or one width for all.
  Status read_shared() {
    KV_ASSIGN(const auto width, fields_.find_whole("shared_experts",
                                                   {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                                                    "shared_intermediate_size"},
                                                   {0, kMaxWidth}));
    if (width && *width % experts_.expert_width != 0) {
      beside_ = *width;
      return ok_status();
    }
    if (width) {
      experts_.shared_experts = *width / experts_.expert_width;
      return ok_status();
    }
    const std::uint32_t otherwise = family_.name == "llama4" ? 1 : 0;
    KV_ASSIGN(experts_.shared_experts,
              fields_.whole_or("shared_experts", {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"},
                               kExpertsRange, otherwise));
    return ok_status();
  }

  // Which layers have experts: all of them but what the fields say.
  Status read_sparse_layers() {
    const auto layers = static_cast<std::uint32_t>(kinds_.size());
    sparse_.assign(layers, true);
    KV_ASSIGN(const auto words, fields_.text_list("expert_layers", "mlp_layer_types", layers));
    for (std::uint32_t at = 0; at < words.size(); ++at) {
      if (words[at] != "dense" && words[at] != "sparse")
        return fields_.bad(fmt::format("mlp_layer_types[{}]", at), nlohmann::json(words[at]), "dense, sparse");
      sparse_[at] = words[at] == "sparse";
    }
    if (!words.empty()) return ok_status();
    if (const auto* list = fields_.find("moe_layer_freq"); list != nullptr && list->is_array()) {
      KV_ASSIGN(const auto bits, fields_.whole_list("expert_layers", "moe_layer_freq", layers, {0, 1}));
      for (std::uint32_t at = 0; at < layers; ++at) sparse_[at] = bits[at] == 1;
      return ok_status();
    }
    if (fields_.has("moe_layers")) {
      KV_ASSIGN(const auto ids, fields_.whole_list("expert_layers", "moe_layers", std::nullopt, {0, layers - 1}));
      sparse_.assign(layers, false);
      for (const std::uint32_t id : ids) sparse_[id] = true;
      if (!ids.empty()) return ok_status();
    }
    return read_sparse_periods(layers);
  }

  // A period of n makes layers n - 1, 2n - 1 ... sparse, except those of DeepSeek (0, n ...) and Jamba (an offset).
  Status read_sparse_periods(std::uint32_t layers) {
    KV_ASSIGN(const auto first, fields_.whole_or("expert_layers", {"first_k_dense_replace", "moe_layer_start_index"},
                                                 kLayersRange, 0));
    KV_ASSIGN(const auto from_zero, fields_.whole_or("", {"moe_layer_freq"}, {1, kMaxLayers}, 1));
    KV_ASSIGN(const auto period,
              fields_.whole_or("expert_layers", {"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval"},
                               {1, kMaxLayers}, 1));
    KV_ASSIGN(const auto offset_period, fields_.whole_or("expert_layers", {"expert_layer_period"}, {1, kMaxLayers}, 1));
    KV_ASSIGN(const auto offset, fields_.whole_or("", {"expert_layer_offset"}, {0, offset_period - 1}, 0));
    KV_ASSIGN(const auto dense, fields_.whole_list("", "mlp_only_layers", std::nullopt, {0, layers - 1}));
    for (std::uint32_t at = 0; at < layers; ++at)
      sparse_[at] = at >= first && at % from_zero == 0 && (at + 1) % period == 0 && at % offset_period == offset;
    for (const std::uint32_t id : dense) sparse_[id] = false;
    if (std::find(sparse_.begin(), sparse_.end(), true) != sparse_.end()) return ok_status();
    return fields_.bad(*fields_.first_of(kExpertsNames), nlohmann::json(experts_.experts),
                       "fields that leave a layer with experts");
  }

  // Nemotron-H's blocks stand alone: a mixer has no feed-forward, and the kind says where the experts are.
  bool blocks_stand_alone() const {
    return std::any_of(kinds_.begin(), kinds_.end(), [](LayerKind kind) {
      return kind == LayerKind::feed_forward || kind == LayerKind::experts;
    });
  }

  void fill(std::size_t at, bool alone) {
    LayerShape& layer = shape_.layers[at];
    const bool has_experts = alone ? kinds_[at] == LayerKind::experts : experts_.experts > 1 && sparse_[at];
    if (has_experts) {
      layer.experts = experts_.experts;
      layer.shared_experts = experts_.shared_experts;
      layer.expert_width = experts_.expert_width;
      layer.feed_forward = beside_;
    } else if (!alone || kinds_[at] == LayerKind::feed_forward) {
      layer.feed_forward = dense_[at];
    }
    // Gemma 4 has its dense block beside the experts.
    if (has_experts && family_.name == "gemma4") layer.feed_forward = dense_[at];
  }

  const ConfigFields& fields_;
  const Family& family_;
  const std::vector<LayerKind>& kinds_;
  ModelShape& shape_;
  std::vector<std::uint32_t> dense_;  // width of a dense block, one a layer
  std::vector<bool> sparse_;          // one a layer, if there are experts
  LayerShape experts_;                // the expert fields of a sparse layer
  std::uint32_t beside_ = 0;          // width of a dense block beside the experts
};

}  // namespace

Status read_feed_forward(const ConfigFields& fields, const Family& family, const std::vector<LayerKind>& kinds,
                         ModelShape& shape) {
  return FeedForwardReader(fields, family, kinds, shape).read();
}

}  // namespace kvasir::artifact
