// Kernels in double over plain layouts: they judge accuracy, never bits. Beside each result stands the magnitude that a
// rounding-error bound multiplies, so that tests derive their tolerances instead of guessing them.
// Pure functions, any thread.
#pragma once

#include <cstddef>

namespace kvasir::kernels::reference {

// A value and the sum of the absolute values of its terms.
struct Judged {
  double value = 0;
  double magnitude = 0;
};

// sum over k of x[k] * w[k].
Judged dot(const float* x, const float* w, std::size_t k);

// y[i] = x[i] / sqrt(mean(x^2) + epsilon) * weight[i], n values.
void rms_norm(const float* x, const float* weight, std::size_t n, double epsilon, double* y);

// gate * sigmoid(gate) * up.
double silu_mul(double gate, double up);

// GELU of gate by its tanh approximation, times up.
double gelu_mul(double gate, double up);

// One query head over `keys` keys: softmax(scale * K q) V. k and v: [keys][head_dim]; out: [head_dim], the magnitude
// being the weighted mean of |v|. sink: a score more whose value is zero; null = none. Returns the largest magnitude of a
// score, which bounds every score's error.
double attention(const float* q, const float* k, const float* v, std::size_t keys, std::size_t head_dim, double scale,
                 Judged* out, const float* sink = nullptr);

}  // namespace kvasir::kernels::reference
