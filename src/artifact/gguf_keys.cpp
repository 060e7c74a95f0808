#include "artifact/gguf_keys.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kvasir::artifact {

std::string GgufKeys::key(std::string_view suffix) const { return fmt::format("{}.{}", architecture_, suffix); }

Error GgufKeys::error(ErrorCode code, std::string_view suffix, std::string_view what) const {
  return Error{code, fmt::format("{}: metadata key '{}' {}", file_->name(), key(suffix), what)};
}

Result<std::uint32_t> GgufKeys::uint_between(std::string_view suffix, std::uint32_t least, std::uint32_t most) const {
  KV_ASSIGN(const auto value, file_->get_uint(key(suffix)));
  if (value < least || value > most) return bad(suffix, fmt::format("is {}; valid are {} to {}", value, least, most));
  return static_cast<std::uint32_t>(value);
}

Result<double> GgufKeys::positive(std::string_view suffix, double fallback) const {
  if (!has(suffix)) return fallback;
  KV_ASSIGN(const double value, file_->get_float(key(suffix)));
  if (!std::isfinite(value) || value <= 0) return bad(suffix, fmt::format("is {}; a positive number is valid", value));
  return value;
}

Result<std::vector<std::uint32_t>> GgufKeys::by_layer(std::string_view suffix, std::uint32_t layers, std::uint32_t most) const {
  const GgufValue* value = file_->find(key(suffix));
  if (value == nullptr || !std::holds_alternative<GgufArray>(*value)) {
    KV_ASSIGN(const auto scalar, uint_between(suffix, 0, most));
    return std::vector<std::uint32_t>(layers, scalar);
  }
  KV_ASSIGN(const auto entries, file_->get_ints(key(suffix)));
  if (entries.size() != layers)
    return bad(suffix, fmt::format("has {} entries; {} are valid, one a layer", entries.size(), layers));
  std::vector<std::uint32_t> values;
  values.reserve(entries.size());
  for (std::size_t layer = 0; layer < entries.size(); ++layer) {
    if (entries[layer] < 0 || entries[layer] > std::int64_t{most})
      return bad(suffix, fmt::format("is {} for layer {}; valid are 0 to {}", entries[layer], layer, most));
    values.push_back(static_cast<std::uint32_t>(entries[layer]));
  }
  return values;
}

}  // namespace kvasir::artifact
