// What the benchmarks measure with: best-of-many timing, ceilings of this machine in the same sitting, a result hash.
// Thread rule: one caller; `pool` runs the measured work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "platform/isa.hpp"
#include "platform/thread_pool.hpp"

namespace kvasir::bench {

double seconds_now();

// How long to measure each thing. Smoke: just often enough to know that it runs.
struct Effort {
  bool smoke = false;
  double seconds() const { return smoke ? 0.002 : 0.25; }
  std::size_t cold_bytes() const {
    return smoke ? std::size_t{1} << 20 : std::size_t{256} << 20;
  }  // weights rotate over these
};

// Seconds of the fastest call of work(i), i = 0, 1, ...: neighbours on a shared machine only ever slow a run down.
template <class Work>
double best_seconds(const Effort& effort, Work work) {
  double best = 1e9;
  double spent = 0;
  for (std::size_t i = 0; i < 3 || spent < effort.seconds(); ++i) {
    const double begin = seconds_now();
    work(i);
    const double took = seconds_now() - begin;
    best = took < best ? took : best;
    spent += took;
  }
  return best;
}

// What this machine can do at most with a class's instructions on `pool`'s threads.
struct Ceilings {
  double int8_ops = 0;    // a second: vpdpbusd (avx512), vpmaddubsw + vpaddw (avx2); 0 for scalar
  double f32_flops = 0;   // a second, fused multiply-add counted as two; 0 for scalar
  double read_bytes = 0;  // a second, from a footprint of Effort::cold_bytes
};
Ceilings measure_ceilings(platform::Isa isa, platform::ThreadPool& pool, const Effort& effort);

// FNV-1a over the bits of results: printed, so that neither the compiler nor a person can leave work out, and equal on
// every class.
class ResultHash {
 public:
  void add(std::span<const float> values);
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace kvasir::bench
