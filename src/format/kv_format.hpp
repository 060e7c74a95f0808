// How a token row is stored: the element formats of K and V. Each format is a specification: range, rounding, layout.
// Pure values and functions, any thread.
//
//   f32   IEEE binary32, as computed.
//   f16   IEEE binary16, round to nearest even; above 65,504 the value becomes infinity (not saturated).
//   bf16  upper half of binary32, round to nearest even; NaN stays NaN.
//
// Known by their size only, for plans; no engine of ours stores them:
//
//   fp8_e4m3, fp8_e5m2   8-bit floats, one constant scale a tensor.
//   int8, int4           integers with one f32 scale a row and KV head, beside the rows of its block.
//
// A format's commit group is the number of tokens it needs complete before their stored form is final: 1 for all of
// the above (a row depends on itself alone). `block_tokens` is a multiple of it and of 16, and divides 256.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir::format {

enum class KvType : std::uint8_t { f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, int4 };
inline constexpr std::array kKvTypes = {KvType::f32,      KvType::f16,  KvType::bf16, KvType::fp8_e4m3,
                                        KvType::fp8_e5m2, KvType::int8, KvType::int4};

// Names as on the command line (`--kv-cache-dtype`).
std::string_view to_string(KvType type);
std::optional<KvType> parse_kv_type(std::string_view name);
// All of them, for messages: "f32, f16, ...".
std::string kv_type_names();

// Whether rows can be stored in it, not only planned.
constexpr bool is_offered(KvType type) { return type <= KvType::bf16; }

constexpr std::uint32_t element_bits(KvType type) {
  return type == KvType::f32 ? 32 : type <= KvType::bf16 ? 16 : type == KvType::int4 ? 4 : 8;
}
// Beside the elements of a row, for each KV head.
constexpr std::uint32_t row_scale_bytes(KvType type) { return type >= KvType::int8 ? 4 : 0; }

// REQUIRES: is_offered(type).
constexpr std::size_t element_bytes(KvType type) { return type == KvType::f32 ? 4 : 2; }
constexpr std::uint32_t commit_group(KvType) { return 1; }

// K and V each have a format.
struct KvFormat {
  KvType k = KvType::f16;
  KvType v = KvType::f16;
  bool operator==(const KvFormat&) const = default;
};

// "int8", or K and V apart as "int8/f16".
std::optional<KvFormat> parse_kv_format(std::string_view text);

// Scalar encode and decode: what `simd/` must equal bit for bit.
std::uint16_t encode_f16(float value);
float decode_f16(std::uint16_t bits);
std::uint16_t encode_bf16(float value);
float decode_bf16(std::uint16_t bits);

}  // namespace kvasir::format
