#include "artifact/config_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "artifact/config_experts.hpp"
#include "artifact/config_family.hpp"
#include "artifact/config_fields.hpp"
#include "artifact/config_memory.hpp"
#include "artifact/config_pattern.hpp"
#include "artifact/config_text.hpp"
#include "artifact/config_weights.hpp"
#include "artifact/parameter_count.hpp"
#include "base/suggestion.hpp"
#include "platform/mapped_file.hpp"

namespace kvasir::artifact {
namespace {

using namespace shape_limits;

constexpr Range kTokensRange{1, kMaxTokens};
constexpr std::size_t kShownBytes = 64;   // of a model_type in a message

// The fields of the language model, and those of the whole file: they are the same unless the model is multimodal.
struct Config {
  ConfigFields text, whole;

  // A field of the language model, else of the whole.
  const ConfigFields& with(std::string_view name) const { return text.has(name) ? text : whole; }
};

Result<Config> split(const ConfigFields& whole) {
  for (const std::string_view name : {"text_config", "llm_config", "language_config", "thinker_config.text_config"}) {
    KV_ASSIGN(const auto nested, whole.within(name));
    if (nested) return Config{*nested, whole};
  }
  return Config{whole, whole};
}

class ConfigReader {
 public:
  ConfigReader(const Config& config, std::string_view family, ModelShape& shape)
      : config_(config), text_(config.text), shape_(shape), as_family_(family) {}

  Status read() {
    KV_TRY(read_names());
    KV_TRY(check_family());
    const Family family = family_of(model_type_);
    shape_.family = std::string(family.name.empty() ? "unknown" : family.name);
    KV_TRY(read_sizes(family));
    KV_ASSIGN(const auto layers, layer_count());
    KV_ASSIGN(const auto kinds, layer_kinds(text_, family, layers));
    shape_.layers.resize(layers);
    KV_TRY(read_memory(text_, family, kinds, shape_));
    KV_TRY(read_feed_forward(text_, family, kinds, shape_));
    KV_TRY(read_other_weights(text_, family, shape_));
    KV_TRY(check_shape(shape_, text_.source()));
    KV_ASSIGN(shape_.weight_bits, read_weight_bits(config_.with("quantization_config"), config_.with("dtype"),
                                                   config_.with("torch_dtype"), shape_.said_by));
    return count_weights();
  }

 private:
  Status read_names() {
    KV_ASSIGN(const auto encoder, config_.with("is_encoder_decoder").find_flag("", "is_encoder_decoder"));
    if (encoder.value_or(false))
      return Error{ErrorCode::unsupported, fmt::format("{}: field 'is_encoder_decoder' is true; only decoders are offered",
                                                       text_.source())};
    KV_ASSIGN(const auto type, config_.with("model_type").find_text("family", "model_type"));
    model_type_ = type.value_or("");
    KV_ASSIGN(const auto name, config_.whole.find_text("name", "_name_or_path"));
    shape_.name = name && !name->empty() ? *name : model_type_.empty() ? text_.source() : model_type_;
    return ok_status();
  }

  // REQUIRES: read_names().
  Status check_family() {
    if (!as_family_.empty()) model_type_ = as_family_;
    if (model_type_.empty()) shape_.unverified.emplace_back("model_type: the file has none, so it is taken for a plain transformer");
    if (model_type_.empty() || is_known_family(model_type_)) return ok_status();
    const std::string shown = model_type_.substr(0, kShownBytes);
    return text_.bad(as_family_.empty() ? "model_type" : "family", nlohmann::json(shown),
                     fmt::format("families known here, nearest {}; --set family=llama reads it as a plain transformer",
                                 fmt::join(nearest_few(shown, known_families(), 3), ", ")));
  }

  Status read_sizes(const Family& family) {
    KV_ASSIGN(shape_.width, text_.whole("width", {"hidden_size", "n_embd", "d_model", "hidden_dim"}, {1, kMaxWidth}));
    KV_ASSIGN(shape_.vocabulary, text_.whole("vocabulary", {"vocab_size", "padded_vocab_size"}, kTokensRange));
    KV_ASSIGN(const auto tied, config_.with("tie_word_embeddings").find_flag("tied_head", "tie_word_embeddings"));
    shape_.tied_head = tied.value_or(family.tied_head);
    if (!tied) shape_.said_by["tied_head"] = fmt::format("default of {}", shape_.family);
    return read_context(family);
  }

  // The longest of two: Command-R's positions are 8,192 and its model_max_length 131,072.
  Status read_context(const Family& family) {
    const FieldNames kPositions = {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx",
                                       "max_sequence_length"};
    constexpr std::string_view kLength = "model_max_length";
    if (family.name == "falcon") {  // its configs leave it out
      KV_ASSIGN(shape_.context, text_.whole_or("context", kPositions, kTokensRange, 2048));
      return ok_status();
    }
    KV_ASSIGN(const auto length, text_.find_whole("", {kLength}, kTokensRange));
    if (length && !text_.first_of(kPositions)) {
      shape_.context = *length;
    } else {
      KV_ASSIGN(shape_.context, text_.whole("context", kPositions, kTokensRange));
      if (!length || *length <= shape_.context) return ok_status();
      shape_.context = *length;
    }
    text_.note("context", kLength);
    return ok_status();
  }

  // Nemotron-H may leave the number to the list of its blocks.
  Result<std::uint32_t> layer_count() const {
    for (const std::string_view name : {"hybrid_override_pattern", "layers_block_type"}) {
      const auto* list = text_.find(name);
      if (list == nullptr || text_.first_of({"num_hidden_layers", "n_layer", "n_layers", "num_layers"})) continue;
      const std::size_t size = list->is_string() ? list->get_ref<const std::string&>().size() : list->size();
      if (size == 0 || size > kMaxLayers)
        return text_.bad_words(name, fmt::format("{} layers", size), fmt::format("1 to {} layers", kMaxLayers));
      text_.note("layers", name);
      return static_cast<std::uint32_t>(size);
    }
    return text_.whole("layers", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, {1, kMaxLayers});
  }

  Status count_weights() {
    const auto count = count_parameters(shape_);
    if (!count.ok() && count.error().code == ErrorCode::unsupported) return ok_status();
    if (!count.ok()) return Error{count.error().code, fmt::format("{}: {}", text_.source(), count.error().message)};
    shape_.parameters = count->total;
    shape_.said_by["parameters"] = "counted";
    if (count->active == count->total) return ok_status();
    shape_.active_parameters = count->active;
    shape_.said_by["active_parameters"] = "counted";
    return ok_status();
  }

  const Config& config_;
  const ConfigFields& text_;
  ModelShape& shape_;
  std::string_view as_family_;
  std::string model_type_;
};

}  // namespace

Result<ModelShape> shape_from_config(std::string_view json_text, std::string_view source_name, std::string_view family) {
  KV_ASSIGN(const nlohmann::json json, parse_config(json_text, source_name));
  ModelShape shape;
  KV_ASSIGN(const Config config, split(ConfigFields(json, std::string(source_name), "", shape.said_by)));
  KV_TRY(ConfigReader(config, family, shape).read());
  return shape;
}

Result<ModelShape> read_config(const std::string& path, std::string_view family) {
  std::error_code ignored;
  const std::string file =
      std::filesystem::is_directory(path, ignored) ? (std::filesystem::path(path) / "config.json").string() : path;
  KV_ASSIGN(const platform::MappedFile mapped, platform::MappedFile::open(file));
  const std::span<const std::byte> bytes = mapped.bytes();
  return shape_from_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file, family);
}

}  // namespace kvasir::artifact
