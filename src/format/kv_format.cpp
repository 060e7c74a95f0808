#include "format/kv_format.hpp"

#include <array>
#include <bit>

namespace kvasir::format {
namespace {

struct Name {
  std::string_view name;
  KvType type;
};
constexpr std::array kNames = {
    Name{"f32", KvType::f32},           Name{"f16", KvType::f16},   Name{"bf16", KvType::bf16}, Name{"fp8_e4m3", KvType::fp8_e4m3},
    Name{"fp8_e5m2", KvType::fp8_e5m2}, Name{"int8", KvType::int8}, Name{"int4", KvType::int4}};

}  // namespace

std::string_view to_string(KvType type) {
  for (const Name& n : kNames)
    if (n.type == type) return n.name;
  return "?";
}

std::optional<KvType> parse_kv_type(std::string_view name) {
  for (const Name& n : kNames)
    if (n.name == name) return n.type;
  return std::nullopt;
}

std::string kv_type_names() {
  std::string names;
  for (const KvType type : kKvTypes) {
    if (!names.empty()) names += ", ";
    names += to_string(type);
  }
  return names;
}

std::optional<KvFormat> parse_kv_format(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto k = parse_kv_type(text.substr(0, slash));
  const auto v = slash == std::string_view::npos ? k : parse_kv_type(text.substr(slash + 1));
  if (!k || !v) return std::nullopt;
  return KvFormat{*k, *v};
}

std::uint16_t encode_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)  // NaN: quiet, payload's upper bits kept, as vcvtps2ph does
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to infinity
  std::uint32_t mantissa = 0;
  std::uint32_t shift = 0;
  std::uint32_t base = 0;
  if (magnitude >= 0x38800000u) {  // normal half
    mantissa = magnitude & 0x7fffffu;
    base = ((magnitude >> 23) - 112) << 10;
    shift = 13;
  } else {  // subnormal half or zero
    if (magnitude < 0x33000000u) return sign;
    mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    shift = 126 - (magnitude >> 23);
  }
  const std::uint32_t kept = mantissa >> shift;
  const std::uint32_t rest = mantissa & ((1u << shift) - 1);
  const std::uint32_t half = 1u << (shift - 1);
  const std::uint32_t up = (rest > half || (rest == half && (kept & 1u))) ? 1u : 0u;
  return static_cast<std::uint16_t>(sign | (base + kept + up));  // a carry moves into the exponent, as it should
}

float decode_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x400000u : 0u));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t encode_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float decode_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace kvasir::format
