// The scalar twin: the specification of kernels/kernels.hpp as plain code. It is what every other class must equal bit
// for bit, and what a machine without AVX2 runs. No cleverness belongs here: a reader must see that it is right.
// Thread rule: as kernels/kernels.hpp.
#pragma once

#include "kernels/kernels.hpp"

namespace kvasir::kernels {

const KernelSet& exact_kernels();

namespace exact {

// The functions of the table; contracts in kernels/kernels.hpp.
void quantize(const float* x, std::size_t x_stride, std::size_t row_begin, std::size_t row_end,
              ActivationPanels panels);
void matmul_int8(const PackedMatrix& w, const ActivationPanels& a, std::size_t rows, std::size_t tile_begin,
                 std::size_t tile_end, MatmulOutput out);
void matmul_f32(const PackedMatrix& w, const float* x, std::size_t x_stride, std::size_t rows, std::size_t tile_begin,
                std::size_t tile_end, float* scratch, MatmulOutput out);
void unpack_row(const PackedMatrix& w, std::size_t row, float* values);
void rms_norm(const float* x, const float* weight, std::size_t n, float epsilon, float* y);
void silu_mul(float* gate, const float* up, std::size_t n);
void gelu_mul(float* gate, const float* up, std::size_t n);
void store_kv(const float* k, const float* v, std::size_t head_dim, format::KvFormat format, std::byte* k_to,
              std::byte* v_to);
void attention_span(const AttentionTile& tile, std::uint32_t span, SpanState state, float* scratch);
void attention_merge(SpanState into, SpanState next, std::size_t lines, std::size_t head_dim);
void attention_finish(const AttentionTile& tile, SpanState state);

}  // namespace exact
}  // namespace kvasir::kernels
