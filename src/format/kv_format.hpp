// How a token row is stored: the element formats of K and V. Each format is a specification: range, rounding, layout.
// Pure values and functions, any thread.
//
//   f32   IEEE binary32, as computed.
//   f16   IEEE binary16, round to nearest even; above 65,504 the value becomes infinity (not saturated).
//   bf16  upper half of binary32, round to nearest even; NaN stays NaN.
//
// A format's commit group is the number of tokens it needs complete before their stored form is final: 1 for all of
// the above (a row depends on itself alone). `block_tokens` is a multiple of it and of 16, and divides 256.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvasir::format {

enum class KvType : std::uint8_t { f32, f16, bf16 };

// Names as on the command line (`--kv-cache-dtype`).
std::string_view to_string(KvType type);
std::optional<KvType> parse_kv_type(std::string_view name);

constexpr std::size_t element_bytes(KvType type) { return type == KvType::f32 ? 4 : 2; }
constexpr std::uint32_t commit_group(KvType) { return 1; }

// K and V each have a format.
struct KvFormat {
  KvType k = KvType::f16;
  KvType v = KvType::f16;
  bool operator==(const KvFormat&) const = default;
};

// Scalar encode and decode: what `simd/` must equal bit for bit.
std::uint16_t encode_f16(float value);
float decode_f16(std::uint16_t bits);
std::uint16_t encode_bf16(float value);
float decode_bf16(std::uint16_t bits);

}  // namespace kvasir::format
