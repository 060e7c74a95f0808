#include "kernels/kernels.hpp"

namespace kvasir::kernels {
namespace {

void rotate(float& a, float& b, float cosine, float sine) {
  const float from_a = a;
  const float from_b = b;
  a = from_a * cosine - from_b * sine;
  b = from_a * sine + from_b * cosine;
}

}  // namespace

void rope_interleaved(float* head, std::size_t dim, const float* cosines, const float* sines) {
  for (std::size_t i = 0; i < dim / 2; ++i) rotate(head[2 * i], head[2 * i + 1], cosines[i], sines[i]);
}

void rope_halves(float* head, std::size_t dim, const float* cosines, const float* sines) {
  for (std::size_t i = 0; i < dim / 2; ++i) rotate(head[i], head[i + dim / 2], cosines[i], sines[i]);
}

}  // namespace kvasir::kernels
