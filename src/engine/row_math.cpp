#include "engine/row_math.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "base/fixed_math.hpp"

namespace kvasir::engine {
namespace {

constexpr std::size_t kLanes = 16;
constexpr float kLowest = -std::numeric_limits<float>::infinity();
static_assert(kRowBlock % kLanes == 0);

// Maximum of a block; lanes so that it becomes vector code. `x > m` is false for NaN.
float block_maximum(const float* x, std::size_t count) {
  float lane[kLanes];
  for (float& m : lane) m = kLowest;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  }
  float m = kLowest;
  for (; i < count; ++i) m = x[i] > m ? x[i] : m;
  for (const float l : lane) m = l > m ? l : m;
  return m;
}

[[gnu::always_inline]] inline float block_sum_exp(const float* x, std::size_t count, float max, float scale) {
  float lane[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) lane[j] += exp_f32((x[i + j] - max) * scale);
  }
  for (std::size_t j = 0; i + j < count; ++j) lane[j] += exp_f32((x[i + j] - max) * scale);
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) lane[j] += lane[j + width];
  }
  return lane[0];
}

[[gnu::always_inline]] inline double row_sum_exp(const float* x, std::size_t count, float max, float scale) {
  double sum = 0;
  for (std::size_t begin = 0; begin < count; begin += kRowBlock) {
    sum += static_cast<double>(block_sum_exp(x + begin, std::min(kRowBlock, count - begin), max, scale));
  }
  return sum;
}

// One body, compiled for each class: only there is std::fma one instruction. Its result is exact rounding everywhere.
double sum_exp_scalar(const float* x, std::size_t count, float max, float scale) {
  return row_sum_exp(x, count, max, scale);
}
[[gnu::target("avx2,fma")]] double sum_exp_avx2(const float* x, std::size_t count, float max, float scale) {
  return row_sum_exp(x, count, max, scale);
}
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] double sum_exp_avx512(const float* x, std::size_t count,
                                                                                      float max, float scale) {
  return row_sum_exp(x, count, max, scale);
}

}  // namespace

RowMax row_max(std::span<const float> logits, std::span<float> block_max) {
  KV_CHECK(!logits.empty(), "a row of logits has at least one");
  KV_CHECK(block_max.size() >= row_blocks(logits.size()), "one maximum a block");
  RowMax best{kLowest, 0};
  std::size_t best_block = 0;
  for (std::size_t b = 0; b * kRowBlock < logits.size(); ++b) {
    const std::size_t begin = b * kRowBlock;
    block_max[b] = block_maximum(logits.data() + begin, std::min(kRowBlock, logits.size() - begin));
    if (block_max[b] > best.value) {   // strictly: of equal blocks the first stays
      best.value = block_max[b];
      best_block = b;
    }
  }
  if (best.value == kLowest) return best;
  std::size_t i = best_block * kRowBlock;
  while (logits[i] != best.value) ++i;
  best.token = static_cast<TokenId>(i);
  return best;
}

double sum_exp(std::span<const float> logits, float max, float scale, platform::Isa isa) {
  switch (isa) {
    case platform::Isa::avx512: return sum_exp_avx512(logits.data(), logits.size(), max, scale);
    case platform::Isa::avx2: return sum_exp_avx2(logits.data(), logits.size(), max, scale);
    case platform::Isa::scalar: break;
  }
  return sum_exp_scalar(logits.data(), logits.size(), max, scale);
}

std::uint32_t rank_of(std::span<const float> logits, TokenId token) {
  const auto at = static_cast<std::size_t>(token);
  KV_CHECK(at < logits.size(), "the token is one of the row's");
  const float own = logits[at];
  if (!(own == own)) return static_cast<std::uint32_t>(logits.size());
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < at; ++i) before += logits[i] >= own;
  for (std::size_t i = at + 1; i < logits.size(); ++i) before += logits[i] > own;
  return before + 1;
}

double log_probability(float logit, float max, double sum) {
  if (!(sum > 0)) return -std::numeric_limits<double>::infinity();   // no logit is a number: nothing has a chance
  return static_cast<double>(logit) - static_cast<double>(max) - log_f64(sum);
}

}  // namespace kvasir::engine
