#include "kernels/reference/reference.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace kvasir::kernels::reference {

Judged dot(const float* x, const float* w, std::size_t k) {
  Judged sum;
  for (std::size_t i = 0; i < k; ++i) {
    const double term = double{x[i]} * double{w[i]};
    sum.value += term;
    sum.magnitude += std::fabs(term);
  }
  return sum;
}

void rms_norm(const float* x, const float* weight, std::size_t n, double epsilon, double* y) {
  const double mean = dot(x, x, n).value / static_cast<double>(n);
  const double r = 1.0 / std::sqrt(mean + epsilon);
  for (std::size_t i = 0; i < n; ++i) y[i] = double{x[i]} * r * double{weight[i]};
}

double silu_mul(double gate, double up) { return gate / (1.0 + std::exp(-gate)) * up; }

double gelu_mul(double gate, double up) {
  const double z = std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate);
  return gate / (1 + std::exp(-2 * z)) * up;   // = 0.5 gate (1 + tanh(z)) up, without its cancellation
}

double attention(const float* q, const float* k, const float* v, std::size_t keys, std::size_t head_dim, double scale,
                 Judged* out, const float* sink) {
  std::vector<double> scores(keys);
  double largest_magnitude = 0;
  for (std::size_t key = 0; key < keys; ++key) {
    const Judged score = dot(q, k + key * head_dim, head_dim);
    scores[key] = score.value * scale;
    largest_magnitude = std::max(largest_magnitude, score.magnitude * std::fabs(scale));
  }
  double max = *std::max_element(scores.begin(), scores.end());
  if (sink != nullptr) max = std::max(max, double{*sink});
  double sum = sink != nullptr ? std::exp(double{*sink} - max) : 0;
  std::fill(out, out + head_dim, Judged{});
  for (std::size_t key = 0; key < keys; ++key) {
    const double p = std::exp(scores[key] - max);
    sum += p;
    for (std::size_t c = 0; c < head_dim; ++c) {
      out[c].value += p * double{v[key * head_dim + c]};
      out[c].magnitude += p * std::fabs(double{v[key * head_dim + c]});
    }
  }
  for (std::size_t c = 0; c < head_dim; ++c) {
    out[c].value /= sum;
    out[c].magnitude /= sum;
  }
  return largest_magnitude;
}

}  // namespace kvasir::kernels::reference
