#include "bench/measure.hpp"

#include <immintrin.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <vector>

#include "platform/aligned_buffer.hpp"

namespace kvasir::bench {
namespace {

constexpr int kChains = 10;              // independent accumulators: latency times throughput of the instructions below
constexpr std::size_t kSteps = 1 << 14;  // well under a time slice: the best call is an undisturbed one

// Each loop keeps its operands unknown to the compiler, or equal chains would merge into one; every loop over chains is
// unrolled, or GCC keeps the accumulators in memory.
[[gnu::target("avx2,fma"), gnu::noinline]] float fma_chains_avx2(float seed) {
  __m256 sum[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sum[i] = _mm256_set1_ps(seed * static_cast<float>(i));
  __m256 x = _mm256_set1_ps(seed);
  for (std::size_t step = 0; step < kSteps; ++step) {
    asm volatile("" : "+x"(x));
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum[i] = _mm256_fmadd_ps(sum[i], x, x);
  }
#pragma GCC unroll 16
  for (int i = 1; i < kChains; ++i) sum[0] = _mm256_add_ps(sum[0], sum[i]);
  return _mm256_cvtss_f32(sum[0]);
}

[[gnu::target("avx2"), gnu::noinline]] float int8_chains_avx2(float seed) {
  __m256i sum[kChains];
  __m256i x = _mm256_set1_epi8(static_cast<char>(seed));
  __m256i y = _mm256_set1_epi8(3);
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sum[i] = _mm256_set1_epi32(i);
  for (std::size_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      asm volatile("" : "+x"(x), "+x"(y));
      sum[i] = _mm256_add_epi16(sum[i], _mm256_maddubs_epi16(x, y));  // codes of few bits widen rarely
    }
  }
#pragma GCC unroll 16
  for (int i = 1; i < kChains; ++i) sum[0] = _mm256_add_epi32(sum[0], sum[i]);
  return static_cast<float>(_mm256_extract_epi32(sum[0], 0));
}

[[gnu::target("avx512f"), gnu::noinline]] float fma_chains_avx512(float seed) {
  __m512 sum[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sum[i] = _mm512_set1_ps(seed * static_cast<float>(i));
  __m512 x = _mm512_set1_ps(seed);
  for (std::size_t step = 0; step < kSteps; ++step) {
    asm volatile("" : "+v"(x));
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum[i] = _mm512_fmadd_ps(sum[i], x, x);
  }
#pragma GCC unroll 16
  for (int i = 1; i < kChains; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  return _mm512_cvtss_f32(sum[0]);
}

[[gnu::target("avx512f,avx512vnni"), gnu::noinline]] float int8_chains_avx512(float seed) {
  __m512i sum[kChains];
  __m512i x = _mm512_set1_epi32(static_cast<int>(seed));
  __m512i y = _mm512_set1_epi32(0x03030303);
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sum[i] = _mm512_set1_epi32(i);
  for (std::size_t step = 0; step < kSteps; ++step) {
    asm volatile("" : "+v"(x), "+v"(y));
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum[i] = _mm512_dpbusd_epi32(sum[i], x, y);
  }
#pragma GCC unroll 16
  for (int i = 1; i < kChains; ++i) sum[0] = _mm512_add_epi32(sum[0], sum[i]);
  return static_cast<float>(_mm_cvtsi128_si32(_mm512_castsi512_si128(sum[0])));
}

// Operations a second of `chains` on all threads, `lane_ops` operations a chain and step.
double chain_rate(float (*chains)(float), double lane_ops, platform::ThreadPool& pool, const Effort& effort) {
  std::vector<float> sink(pool.threads() * 16);
  const double best = best_seconds(
      effort, [&](std::size_t) { pool.run([&](std::size_t thread) { sink[thread * 16] = chains(0.5f); }); });
  return lane_ops * kChains * static_cast<double>(kSteps) * static_cast<double>(pool.threads()) / best;
}

// Each call reads the next slice of the footprint: cold, and short enough that the best call is undisturbed.
double read_rate(platform::ThreadPool& pool, const Effort& effort) {
  constexpr std::size_t kSlices = 64;
  const platform::AlignedBuffer memory(effort.cold_bytes());
  std::memset(memory.data(), 1, memory.bytes());
  const std::size_t slice = memory.bytes() / sizeof(__m128i) / kSlices;
  std::vector<std::uint64_t> sink(pool.threads() * 8);
  const double best = best_seconds(effort, [&](std::size_t call) {
    const __m128i* from = memory.as<const __m128i>() + call % kSlices * slice;
    pool.run([&](std::size_t thread) {
      const platform::Range part = platform::part(slice / 4, thread, pool.threads());
      __m128i sums[4] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128()};
      for (std::size_t line = part.begin; line < part.end; ++line) {
        _mm_prefetch(reinterpret_cast<const char*>(from + line * 4) + 4096, _MM_HINT_T0);
        for (std::size_t i = 0; i < 4; ++i) sums[i] = _mm_add_epi64(sums[i], _mm_load_si128(from + line * 4 + i));
      }
      const __m128i sum = _mm_add_epi64(_mm_add_epi64(sums[0], sums[1]), _mm_add_epi64(sums[2], sums[3]));
      sink[thread * 8] = static_cast<std::uint64_t>(_mm_cvtsi128_si64(sum));
    });
  });
  return static_cast<double>(slice * sizeof(__m128i)) / best;
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Ceilings measure_ceilings(platform::Isa isa, platform::ThreadPool& pool, const Effort& effort) {
  Ceilings c;
  c.read_bytes = read_rate(pool, effort);
  if (isa == platform::Isa::avx2) {
    c.f32_flops = chain_rate(fma_chains_avx2, 16, pool, effort);
    c.int8_ops = chain_rate(int8_chains_avx2, 64, pool, effort);
  }
  if (isa == platform::Isa::avx512) {
    c.f32_flops = chain_rate(fma_chains_avx512, 32, pool, effort);
    c.int8_ops = chain_rate(int8_chains_avx512, 128, pool, effort);
  }
  return c;
}

void ResultHash::add(std::span<const float> values) {
  for (float value : values) {
    value_ ^= std::bit_cast<std::uint32_t>(value);
    value_ *= 0x100000001b3u;
  }
}

}  // namespace kvasir::bench
