// How a tensor's elements are stored in a GGUF file: block sizes, and the exact values they stand for.
// Pure functions, any thread.
//
// dequantize() yields exactly the float32 values that the `gguf` Python package's `quants.dequantize` yields (same
// operations, same order, no fused multiply-add): the definition of "the weights" for every reference we compare with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace kvasir::artifact {

// Values are GGUF's ggml_type numbers.
enum class TensorType : std::uint32_t {
  f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8,
  q2_k = 10, q3_k = 11, q4_k = 12, q5_k = 13, q6_k = 14, iq4_nl = 20, iq4_xs = 23, bf16 = 30,
};

// Names as in the field: "F32", "Q4_K", "IQ4_NL".
std::string_view to_string(TensorType type);

// The type for a number in a file. Errors: unsupported, naming the type if ggml knows it ("IQ3_S"), else the number.
Result<TensorType> tensor_type_from_ggml(std::uint32_t number);

// Elements that share one stored block, and that block's bytes. F32: 1 and 4. Q4_K: 256 and 144.
std::uint32_t block_elements(TensorType type);
std::uint32_t block_bytes(TensorType type);

// source: whole blocks, block_bytes(type) * (values.size() / block_elements(type)) bytes.
// values: one row or more, size a multiple of block_elements(type).
// REQUIRES: the sizes agree.
void dequantize(TensorType type, std::span<const std::byte> source, std::span<float> values);

}  // namespace kvasir::artifact
