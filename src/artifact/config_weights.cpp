#include "artifact/config_weights.hpp"

#include <fmt/format.h>

namespace kvasir::artifact {
namespace {

using namespace shape_limits;

constexpr std::uint32_t kMaxBits = 64, kMaxGroup = 1u << 20;
constexpr double kBitsOfNvfp4 = 4.5;    // 16 elements of 4 bits share a scale of 8
constexpr double kBitsOfMxfp4 = 4.25;   // 32 elements of 4 bits share a scale of 8

struct TypeBits {
  std::string_view name;
  double bits;
};

constexpr TypeBits kTypes[] = {{"float64", 64}, {"float32", 32},       {"float16", 16},
                               {"bfloat16", 16}, {"float8_e4m3fn", 8}, {"float8_e5m2", 8},
                               {"float", 32},    {"half", 16},         {"int8", 8}};

Result<double> bits_of_type(const ConfigFields& fields, std::string_view name) {
  KV_ASSIGN(const auto text, fields.find_text("weight_bits", name));
  std::string_view type = *text;
  constexpr std::string_view kModule = "torch.";
  if (type.starts_with(kModule)) type.remove_prefix(kModule.size());
  if (type == "auto") return 16.0;
  std::string valid;
  for (const TypeBits& known : kTypes) {
    if (known.name == type) return known.bits;
    valid += fmt::format("{}{}", valid.empty() ? "" : ", ", known.name);
  }
  return fields.bad(name, nlohmann::json(*text), valid);
}

// The weights of the first group of compressed-tensors, whatever its name.
const nlohmann::json* first_group(const ConfigFields& fields) {
  const auto* groups = fields.find("quantization_config.config_groups");
  if (groups == nullptr || !groups->is_object() || groups->empty()) return nullptr;
  const auto weights = groups->begin()->find("weights");
  return weights != groups->begin()->end() && weights->is_object() ? &*weights : nullptr;
}

// Bits and group size of a quantization that gives numbers; 0 bits if it does not.
Result<double> bits_of_numbers(const ConfigFields& fields) {
  ConfigFields at = fields;
  std::string_view bits_name = "quantization_config.bits", group_name = "quantization_config.group_size";
  if (const auto* weights = first_group(fields)) {
    at = ConfigFields(*weights, fields.source(), "quantization_config.config_groups.*.weights.", fields.notes());
    bits_name = "num_bits";
    group_name = "group_size";
  }
  KV_ASSIGN(const auto bits, at.find_whole("weight_bits", {bits_name, "quantization_config.w_bit"}, {1, kMaxBits}));
  if (!bits) return 0.0;
  const auto* group = at.find(group_name);
  if (group == nullptr || *group == -1) return static_cast<double>(*bits);  // -1: a whole row
  KV_ASSIGN(const auto size, at.whole("", {group_name}, {1, kMaxGroup}));
  return *bits + (16.0 + *bits) / size;
}

Result<double> bits_of_quantization(const ConfigFields& fields) {
  if (!fields.find("quantization_config")->is_object())
    return fields.bad("quantization_config", *fields.find("quantization_config"), "an object");
  for (const auto& [flag, bits] : {TypeBits{"load_in_4bit", 4}, TypeBits{"load_in_8bit", 8}}) {
    KV_ASSIGN(const auto set, fields.find_flag("", fmt::format("quantization_config.{}", flag)));
    if (set.value_or(false)) return bits;
  }
  KV_ASSIGN(const double numbers, bits_of_numbers(fields));
  KV_ASSIGN(const auto method, fields.find_text("", "quantization_config.quant_method"));
  KV_ASSIGN(const auto algorithm, fields.find_text("", "quantization_config.quant_algo"));
  fields.note("weight_bits", "quantization_config");
  const std::string said = fmt::format("{} {}", method.value_or(""), algorithm.value_or(""));
  const auto says = [&said](std::string_view word) { return said.find(word) != std::string::npos; };
  if (says("NVFP4") || says("nvfp4")) return kBitsOfNvfp4;
  if (says("mxfp4") || says("MXFP4")) return kBitsOfMxfp4;
  if (numbers != 0) return numbers;
  if (says("fp8") || says("FP8") || says("int8")) return 8.0;
  return fields.bad_words("quantization_config", "without bits", "a field 'bits', or quant_method fp8, mxfp4 or nvfp4");
}

}  // namespace

Result<double> read_weight_bits(const ConfigFields& quantized, const ConfigFields& dtype, const ConfigFields& torch_dtype,
                                ConfigFields::Notes& notes) {
  if (quantized.has("quantization_config")) return bits_of_quantization(quantized);
  if (dtype.has("dtype")) return bits_of_type(dtype, "dtype");
  if (torch_dtype.has("torch_dtype")) return bits_of_type(torch_dtype, "torch_dtype");
  notes["weight_bits"] = "default";
  return 16.0;
}

Status read_other_weights(const ConfigFields& fields, const Family& family, ModelShape& shape) {
  for (const std::string_view learned : {"gpt2", "gpt_bigcode", "gpt_neo", "opt"})
    if (family.name == learned) shape.other_parameters += std::uint64_t{shape.width} * shape.context;
  KV_ASSIGN(const auto dim, fields.whole_or("", {"hidden_size_per_layer_input"}, {0, kMaxWidth}, 0));
  if (dim == 0) return ok_status();
  // A table of dim elements a layer and token, a projection into them, and a gate and a projection back in each layer.
  KV_ASSIGN(const auto tokens, fields.whole_or("", {"vocab_size_per_layer_input"}, {1, kMaxTokens}, shape.vocabulary));
  const auto layers = static_cast<std::uint64_t>(shape.layers.size());
  const std::uint64_t rows = std::uint64_t{tokens} + 3 * std::uint64_t{shape.width};
  if (__builtin_mul_overflow(rows, layers * dim, &shape.other_parameters) || shape.other_parameters > kMaxParameters)
    return fields.bad("hidden_size_per_layer_input", nlohmann::json(dim), "fewer elements a layer");
  return ok_status();
}

}  // namespace kvasir::artifact
