// What the kernel tests share: the classes under test, seeded data, packed matrices, quantized rows and paged KV
// memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "kernels/pack.hpp"
#include "platform/aligned_buffer.hpp"

namespace kvasir::kernels::test {

// A class of kernels under test. "emulated_avx512" is the AVX-512 source with its intrinsics emulated.
struct KernelClass {
  std::string name;
  const KernelSet* set = nullptr;
};
void PrintTo(const KernelClass& c, std::ostream* out);
std::vector<KernelClass> classes();

// A suite that runs once for every class.
class EveryClass : public ::testing::TestWithParam<KernelClass> {
 protected:
  const KernelSet& set() const { return *GetParam().set; }
};
std::string class_name(const ::testing::TestParamInfo<KernelClass>& parameter);
#define KVASIR_FOR_EVERY_CLASS(Suite) \
  INSTANTIATE_TEST_SUITE_P(Classes, Suite, ::testing::ValuesIn(classes()), class_name)

// Deterministic data: the same on every machine and library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567) {}
  std::uint64_t next();
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() >> 11) % bound; }
  float uniform(float low, float high);
  float normal();  // sum of uniforms, variance 1
  std::vector<float> normals(std::size_t count, float scale = 1);

 private:
  std::uint64_t state_;
};

// Equal bit for bit; the message names the first difference.
struct Comparison {
  bool same = true;
  std::string message;
  explicit operator bool() const { return same; }
};
Comparison compare(std::span<const float> got, std::span<const float> wanted);

// A random source row set in GGUF's encoding, with scales as real weights have them (some zero, negative, subnormal).
std::vector<std::byte> random_source(SourceEncoding encoding, std::size_t n, std::size_t k, std::uint64_t seed);
std::size_t source_row_bytes(SourceEncoding encoding, std::size_t k);

// A packed matrix and the memory it views.
struct Matrix {
  platform::AlignedBuffer memory;
  PackedMatrix view;
};
Matrix pack(SourceEncoding encoding, std::size_t n, std::size_t k, std::span<const std::byte> source);
Matrix random_matrix(SourceEncoding encoding, std::size_t n, std::size_t k, std::uint64_t seed);

std::vector<SourceEncoding> integer_encodings();
std::vector<SourceEncoding> all_encodings();
const char* name_of(SourceEncoding encoding);

// Rows quantized by a class, in panels of the size it asks for. Padding rows hold garbage.
struct Activations {
  platform::AlignedArray<std::int8_t> q;
  platform::AlignedArray<float> d, ds;
  platform::AlignedArray<std::int32_t> sum, sum_low;
  ActivationPanels panels;
};
Activations make_panels(const KernelSet& set, std::size_t rows, std::size_t k);
Activations quantize(const KernelSet& set, const float* x, std::size_t stride, std::size_t rows, std::size_t k);

// The paged memory of one sequence: blocks in shuffled order over several superpages, two layers; layer 1 is used, all
// other bytes hold `fill`.
struct KvSpec {
  std::uint32_t kv_heads = 1, head_dim = 64, block_tokens = 16, tokens = 1;
  format::KvFormat format;
  std::uint64_t seed = 1;
  std::byte fill = std::byte{0xff};  // 0xff in every byte is a NaN in every format
};
class KvMemory {
 public:
  static constexpr std::uint32_t kLayer = 1;
  explicit KvMemory(const KvSpec& spec);
  const KvSpec& spec() const { return spec_; }
  const format::PagedKvView& view() const { return view_; }
  const BlockId* blocks() const { return blocks_.data(); }
  // The rows as they were given, before encoding: [tokens][head_dim] of one head.
  std::vector<float> k_rows(std::uint32_t head) const { return rows_of(k_, head); }
  std::vector<float> v_rows(std::uint32_t head) const { return rows_of(v_, head); }
  // Overwrites K and V of every head at `position`, each element's bytes with `fill`.
  void poison(std::uint32_t position, std::byte fill);

 private:
  std::vector<float> rows_of(const std::vector<float>& all, std::uint32_t head) const;
  std::byte* block_of(std::uint32_t position) const;

  KvSpec spec_;
  platform::AlignedBuffer memory_;
  format::PagedKvView view_;
  std::vector<BlockId> blocks_;
  std::vector<float> k_, v_;  // [tokens][kv_heads][head_dim]
};

// Attention as the forward pass runs it: tiles of `tile_rows` rows, spans in order, merged, finished. Returns
// [rows][heads][head_dim].
struct AttentionRun {
  std::uint32_t heads = 1, rows = 1, first_position = 0, tile_rows = 1;
  float scale = 0.125f;
  format::Reach reach = {};
  std::vector<float> sinks = {};   // [heads], or none
};
std::vector<float> attend(const KernelSet& set, const KvMemory& kv, const std::vector<float>& q,
                          const AttentionRun& run);

}  // namespace kvasir::kernels::test
