// How near do the kernels come to what this machine can do?
//
// usage: bench_kernels [--smoke] [--threads N]       class: the machine's best, or KVASIR_ISA
//
//   matmul   packed weights x 8-bit activations at a model's shapes (inputs x outputs), M rows. Weights are cold: calls
//            rotate over 256 MB of copies. The floor is the larger of stored bytes over read bandwidth and operations
//            over the class's int8 peak; "% floor" is floor time over measured time, "by" which of the two binds.
//   decode   attention of one row over `depth` stored keys, f16, cold; floor: stored bytes over read bandwidth
//   prefill  attention of 512 rows that end at 4096 keys; floor: the class's f32 peak
//   rows     norm, gated silu, quantization; pack: GGUF rows to tiles. ns a row; no floor
//
// Not a goal: comparing machines. Ceilings and kernels are measured in one sitting, and only their ratios mean
// something.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.hpp"
#include "kernels/kernels.hpp"
#include "kernels/pack.hpp"
#include "platform/aligned_buffer.hpp"

namespace kvasir::bench {
namespace {

using platform::AlignedArray;
using platform::AlignedBuffer;

struct Setting {
  const kernels::KernelSet* kernels;
  platform::ThreadPool* pool;
  Effort effort;
  Ceilings ceilings;
  ResultHash hash;
};

// Numbers in [-1, 1) from a fixed sequence.
std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  std::uint32_t state = 12345;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return values;
}

struct Shape {
  std::string_view name;
  std::size_t k, n;
  kernels::WeightForm form;
};
constexpr Shape kShapes[] = {
    {"smollm2 qkv", 576, 960, kernels::WeightForm::u4_dm},
    {"smollm2 out", 576, 576, kernels::WeightForm::u4_dm},
    {"smollm2 gate+up", 576, 3072, kernels::WeightForm::u4_dm},
    {"smollm2 down", 1536, 576, kernels::WeightForm::u4_dm},
    {"smollm2 vocabulary", 576, 49152, kernels::WeightForm::u8_d},
    {"qwen2.5 qkv", 896, 1152, kernels::WeightForm::u5_d},
    {"qwen2.5 gate+up", 896, 9728, kernels::WeightForm::u5_d},
    {"qwen2.5 down", 4864, 896, kernels::WeightForm::u4_sm},
    {"qwen2.5 down", 4864, 896, kernels::WeightForm::u6_s2},
    {"qwen2.5 down, Q2_K", 4864, 896, kernels::WeightForm::u2_f2m},
    {"qwen2.5 down, Q3_K", 4864, 896, kernels::WeightForm::u3_f2},
    {"qwen2.5 down, IQ4", 4864, 896, kernels::WeightForm::t4_s},
    {"qwen2.5 vocabulary", 896, 151936, kernels::WeightForm::u8_d},
};

// `copies` matrices of random codes and one scale; what the weights are does not change how long they take.
AlignedBuffer make_weights(const Shape& shape, std::size_t copies) {
  const kernels::FormTraits t = kernels::traits(shape.form);
  AlignedBuffer memory(copies * kernels::packed_bytes(shape.form, shape.n, shape.k));
  std::vector<std::byte> half(t.half_bytes());
  std::uint32_t state = 1;
  for (std::byte& b : half) b = static_cast<std::byte>((state = state * 1664525u + 1013904223u) >> 24);
  using kernels::ScaleKind;
  const bool small = t.scales != ScaleKind::s && t.scales != ScaleKind::sm && t.scales != ScaleKind::s2;
  const float scale = 0x1p-8f;
  const std::uint16_t scale_f16 = format::encode_f16(scale);
  for (std::size_t at = t.code_bytes; at < half.size(); at += small ? 2 : 4)
    std::memcpy(half.data() + at, small ? static_cast<const void*>(&scale_f16) : &scale, small ? 2 : 4);
  for (std::size_t at = 0; at < memory.bytes(); at += half.size())
    std::memcpy(memory.data() + at, half.data(), half.size());
  return memory;
}

struct Activations {
  AlignedArray<std::int8_t> q;
  AlignedArray<float> d, ds;
  AlignedArray<std::int32_t> sum, sum_low;
  kernels::ActivationPanels panels;
  Activations(const kernels::KernelSet& set, const std::vector<float>& x, std::size_t rows, std::size_t k) {
    const std::size_t panel_rows = std::min(rows, set.panel_rows);
    q = AlignedArray<std::int8_t>(kernels::ActivationPanels::q_elements(rows, k, panel_rows));
    const std::size_t scales = kernels::ActivationPanels::scale_elements(rows, k, panel_rows);
    d = AlignedArray<float>(scales);
    ds = AlignedArray<float>(scales);
    sum = AlignedArray<std::int32_t>(scales);
    sum_low = AlignedArray<std::int32_t>(scales);
    panels = {.q = q.data(), .d = d.data(), .ds = ds.data(), .sum = sum.data(), .sum_low = sum_low.data(), .k = k, .panel_rows = panel_rows};
    set.quantize(x.data(), k, 0, rows, panels);
  }
};

void bench_matmul(Setting& s, const Shape& shape, const AlignedBuffer& weights, std::size_t copies, std::size_t rows) {
  const std::size_t bytes = kernels::packed_bytes(shape.form, shape.n, shape.k);
  const Activations a(*s.kernels, numbers(rows * shape.k), rows, shape.k);
  const AlignedArray<float> out(rows * shape.n);
  const double best = best_seconds(s.effort, [&](std::size_t call) {
    const kernels::PackedMatrix w = {
        .form = shape.form, .n = shape.n, .k = shape.k, .tiles = weights.data() + call % copies * bytes};
    s.pool->run([&](std::size_t thread) {
      const platform::Range tiles = platform::part(w.count(), thread, s.pool->threads());
      s.kernels->matmul_int8(w, a.panels, rows, tiles.begin, tiles.end, {.data = out.data(), .stride = shape.n});
    });
  });
  s.hash.add(out.span());
  const double ops = 2.0 * static_cast<double>(rows) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  const double by_memory = static_cast<double>(bytes) / s.ceilings.read_bytes;
  const double by_ops = s.ceilings.int8_ops > 0 ? ops / s.ceilings.int8_ops : 0;
  fmt::print(
      "{:<20} {:>5} x {:<6} {:>2} bit {:>4} rows {:>9.3f} ms {:>8.1f} GOP/s {:>6.1f} GB/s {:>5.0f} % floor, by {}\n",
      shape.name, shape.k, shape.n, kernels::traits(shape.form).bits, rows, best * 1e3, ops / best * 1e-9,
      static_cast<double>(bytes) / best * 1e-9, 100 * std::max(by_memory, by_ops) / best,
      by_memory > by_ops ? "memory" : "int8");
}

void bench_matmuls(Setting& s) {
  for (Shape shape : kShapes) {
    if (s.effort.smoke) shape.n = std::min<std::size_t>(shape.n, 96);
    const std::size_t bytes = kernels::packed_bytes(shape.form, shape.n, shape.k);
    const std::size_t copies = s.effort.cold_bytes() / bytes + 1;
    const AlignedBuffer weights = make_weights(shape, copies);
    const std::vector<std::size_t> all_rows =
        s.effort.smoke ? std::vector<std::size_t>{1, 9} : std::vector<std::size_t>{1, 4, 8, 32, 512};
    for (std::size_t rows : all_rows)
      if (rows <= 32 || shape.n < 40000)
        bench_matmul(s, shape, weights, copies, rows);  // nobody asks all of a prompt's logits
  }
}

// ---- attention: 9 query heads over 3 KV heads of 64, f16

constexpr std::uint32_t kHeads = 9, kKvHeads = 3, kHeadDim = 64;

// `copies` sequences of `tokens` stored tokens, one layer.
struct Cache {
  format::PagedKvView view;
  AlignedBuffer memory;
  std::vector<BlockId> blocks;
  std::size_t blocks_each;

  Cache(const kernels::KernelSet& set, std::size_t tokens, std::size_t copies) {
    format::CacheGroup group;
    group.layers = {0};
    group.kv_heads = kKvHeads;
    group.head_dim = kHeadDim;
    view.layout = format::BlockLayout::create(group).value();
    blocks_each = tokens / group.block_tokens;
    memory = AlignedBuffer(copies * blocks_each * view.layout.block_bytes());
    view.blocks = {.base = memory.data(),
                   .superpage_bytes = memory.bytes(),
                   .blocks_per_superpage = static_cast<std::uint32_t>(copies * blocks_each),
                   .block_bytes = view.layout.block_bytes()};
    blocks.resize(copies * blocks_each);
    std::iota(blocks.begin(), blocks.end(), 0);
    const std::vector<float> row = numbers(2 * kHeadDim);
    for (std::uint32_t offset = 0; offset < group.block_tokens; ++offset)
      for (std::uint32_t head = 0; head < kKvHeads; ++head)
        set.store_kv(row.data() + offset % kHeadDim, row.data() + head, kHeadDim, group.format,
                     memory.data() + view.layout.k_offset(0, head, offset),
                     memory.data() + view.layout.v_offset(0, head, offset));
    for (std::size_t block = 1; block < blocks.size(); ++block)
      std::memcpy(memory.data() + block * view.layout.block_bytes(), memory.data(), view.layout.block_bytes());
  }
  std::size_t bytes_each() const { return blocks_each * view.layout.block_bytes(); }
};

struct State {
  AlignedArray<float> max, sum, out;
  explicit State(std::size_t lines) : max(lines), sum(lines), out(lines * kHeadDim) {}
  kernels::SpanState view() const { return {.max = max.data(), .sum = sum.data(), .out = out.data()}; }
};

// Spans [begin, end) of a tile, merged into `merged`.
void attend(const kernels::KernelSet& set, const kernels::AttentionTile& tile, platform::Range spans,
            const State& merged, const State& next, float* scratch) {
  for (std::size_t span = spans.begin; span < spans.end; ++span) {
    const State& to = span == spans.begin ? merged : next;
    set.attention_span(tile, static_cast<std::uint32_t>(span), to.view(), scratch);
    if (span != spans.begin) set.attention_merge(merged.view(), next.view(), tile.lines(), kHeadDim);
  }
}

kernels::AttentionQuery make_query(const Cache& cache, std::size_t copy, const std::vector<float>& q,
                                   std::vector<float>& out, std::size_t first) {
  return {.kv = &cache.view,
          .blocks = cache.blocks.data() + copy * cache.blocks_each,
          .heads = kHeads,
          .q = q.data(),
          .q_stride = kHeads * kHeadDim,
          .out = out.data(),
          .out_stride = kHeads * kHeadDim,
          .first_position = static_cast<std::uint32_t>(first),
          .scale = 0.125f};
}

void bench_decode(Setting& s, std::size_t depth) {
  const std::size_t copies = s.effort.cold_bytes() / (depth * kKvHeads * kHeadDim * 4) + 1;
  const Cache cache(*s.kernels, depth, copies);
  const std::vector<float> q = numbers(kHeads * kHeadDim);
  std::vector<float> out(q.size());
  const std::size_t spans = (depth + format::kSpanTokens - 1) / format::kSpanTokens;
  const std::size_t threads = std::min(s.pool->threads(), spans);  // that have work
  std::vector<State> states, spare;                                // [thread][KV head]; one spare a thread
  std::vector<AlignedArray<float>> scratch;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    for (std::size_t head = 0; head < kKvHeads; ++head) states.emplace_back(kHeads / kKvHeads);
    spare.emplace_back(kHeads / kKvHeads);
    scratch.emplace_back(kernels::attention_scratch_floats(kHeads / kKvHeads, kHeadDim));
  }
  const double best = best_seconds(s.effort, [&](std::size_t call) {
    const kernels::AttentionQuery query = make_query(cache, call % copies, q, out, depth - 1);
    const auto tile = [&](std::uint32_t head) { return kernels::AttentionTile{&query, head, 0, 1}; };
    s.pool->run([&](std::size_t thread) {
      for (std::uint32_t head = 0; head < kKvHeads && thread < threads; ++head)
        attend(*s.kernels, tile(head), platform::part(spans, thread, threads), states[thread * kKvHeads + head],
               spare[thread], scratch[thread].data());
    });
    for (std::uint32_t head = 0; head < kKvHeads; ++head) {
      for (std::size_t thread = 1; thread < threads; ++thread)
        s.kernels->attention_merge(states[head].view(), states[thread * kKvHeads + head].view(), kHeads / kKvHeads,
                                   kHeadDim);
      s.kernels->attention_finish(tile(head), states[head].view());
    }
  });
  s.hash.add(out);
  const double bytes = static_cast<double>(cache.bytes_each());
  fmt::print("{:<20} 9/3 x 64 f16, depth {:>5} {:>25.1f} us {:>21.1f} GB/s {:>5.0f} % floor, by memory\n",
             "decode attention", depth, best * 1e6, bytes / best * 1e-9, 100 * bytes / s.ceilings.read_bytes / best);
}

void bench_prefill(Setting& s, std::size_t rows, std::size_t depth) {
  constexpr std::uint32_t kGroup = kHeads / kKvHeads;
  const std::size_t tile_rows = kernels::kMaxAttentionLines / kGroup;
  const Cache cache(*s.kernels, depth, 1);
  const std::vector<float> q = numbers(rows * kHeads * kHeadDim);
  std::vector<float> out(q.size());
  const kernels::AttentionQuery query = make_query(cache, 0, q, out, depth - rows);
  const std::size_t tiles = (rows + tile_rows - 1) / tile_rows;
  const double best = best_seconds(s.effort, [&](std::size_t) {
    s.pool->run([&](std::size_t thread) {
      const State merged(kernels::kMaxAttentionLines), next(kernels::kMaxAttentionLines);
      const AlignedArray<float> scratch(kernels::attention_scratch_floats(kernels::kMaxAttentionLines, kHeadDim));
      const platform::Range mine = platform::part(tiles * kKvHeads, thread, s.pool->threads());
      for (std::size_t item = mine.begin; item < mine.end; ++item) {
        const auto begin = static_cast<std::uint32_t>(item / kKvHeads * tile_rows);
        const auto end = static_cast<std::uint32_t>(std::min(rows, begin + tile_rows));
        const kernels::AttentionTile tile = {&query, static_cast<std::uint32_t>(item % kKvHeads), begin, end};
        attend(*s.kernels, tile, {0, (depth - rows + end - 1) / format::kSpanTokens + 1}, merged, next, scratch.data());
        s.kernels->attention_finish(tile, merged.view());
      }
    });
  });
  s.hash.add(out);
  double keys = 0;
  for (std::size_t row = 0; row < rows; ++row) keys += static_cast<double>(depth - rows + row + 1);
  const double flops = keys * kHeads * kHeadDim * 4;
  fmt::print("{:<20} 9/3 x 64 f16, {} rows to {:>5} keys {:>12.2f} ms {:>8.1f} GFLOP/s {:>12.0f} % floor, by f32\n",
             "prefill attention", rows, depth, best * 1e3, flops / best * 1e-9,
             s.ceilings.f32_flops > 0 ? 100 * flops / s.ceilings.f32_flops / best : 0);
}

// ---- rows

template <class Work>
void bench_row(Setting& s, std::string_view name, std::size_t bytes, std::size_t rows, Work work) {
  const double best = best_seconds(s.effort, [&](std::size_t) { work(); });
  fmt::print("{:<40} {:>24.1f} ns a row {:>20.1f} GB/s read, 1 thread\n", name, best * 1e9 / static_cast<double>(rows),
             static_cast<double>(bytes) / best * 1e-9);
}

void bench_rows(Setting& s) {
  const std::size_t rows = 32, n = 576, hidden = 1536;
  const std::vector<float> x = numbers(rows * hidden), weight = numbers(hidden);
  std::vector<float> y(rows * hidden);
  bench_row(s, "rms_norm, 576", rows * n * 4, rows, [&] {
    for (std::size_t r = 0; r < rows; ++r)
      s.kernels->rms_norm(x.data() + r * n, weight.data(), n, 1e-5f, y.data() + r * n);
  });
  s.hash.add(y);
  bench_row(s, "silu_mul, 1536", rows * hidden * 8, rows, [&] {
    std::copy(x.begin(), x.end(), y.begin());
    s.kernels->silu_mul(y.data(), x.data(), rows * hidden);
  });
  s.hash.add(y);
  bench_row(s, "gelu_mul, 1536", rows * hidden * 8, rows, [&] {
    std::copy(x.begin(), x.end(), y.begin());
    s.kernels->gelu_mul(y.data(), x.data(), rows * hidden);
  });
  s.hash.add(y);
  Activations a(*s.kernels, x, rows, hidden);
  bench_row(s, "quantize, 1536", rows * hidden * 4, rows,
            [&] { s.kernels->quantize(x.data(), hidden, 0, rows, a.panels); });
  s.hash.add(a.ds.span());
}

void bench_pack(Setting& s) {
  using kernels::SourceEncoding;
  const std::size_t k = 4864 / 256 * 256;
  struct Named {
    std::string_view name;
    SourceEncoding encoding;
  };
  for (const Named& named : {Named{"pack q4_1", SourceEncoding::q4_1}, Named{"pack q5_0", SourceEncoding::q5_0},
                             Named{"pack q8_0", SourceEncoding::q8_0}, Named{"pack q4_k", SourceEncoding::q4_k},
                             Named{"pack q6_k", SourceEncoding::q6_k}, Named{"pack q2_k", SourceEncoding::q2_k},
                             Named{"pack q3_k", SourceEncoding::q3_k}, Named{"pack iq4_xs", SourceEncoding::iq4_xs},
                             Named{"pack f32", SourceEncoding::f32}}) {
    const kernels::SourceBlock block = kernels::source_block(named.encoding);
    const std::size_t row_bytes = k / block.elements * block.bytes;
    const std::vector<std::byte> source(32 * row_bytes, std::byte{0x35});
    const AlignedBuffer tile(kernels::tile_bytes(kernels::form_of(named.encoding), k));
    bench_row(s, named.name, source.size(), 32,
              [&] { kernels::pack_tile(named.encoding, source.data(), row_bytes, 32, k, tile.data()); });
  }
}

int run(const kernels::KernelSet& set, std::size_t threads, const Effort& effort) {
  platform::ThreadPool pool(threads);
  Setting s = {.kernels = &set,
               .pool = &pool,
               .effort = effort,
               .ceilings = measure_ceilings(set.isa, pool, effort),
               .hash = {}};
  fmt::print("class {}, {} thread(s): int8 {:.0f} GOP/s, f32 {:.0f} GFLOP/s, read {:.1f} GB/s\n",
             platform::to_string(set.isa), threads, s.ceilings.int8_ops * 1e-9, s.ceilings.f32_flops * 1e-9,
             s.ceilings.read_bytes * 1e-9);
  bench_matmuls(s);
  bench_decode(s, 512);
  if (!effort.smoke) bench_decode(s, 4096);
  if (effort.smoke)
    bench_prefill(s, 40, 256);
  else
    bench_prefill(s, 512, 4096);
  bench_rows(s);
  bench_pack(s);
  fmt::print("result hash {:016x}\n", s.hash.value());
  return 0;
}

int usage(std::string_view problem) {
  fmt::print(stderr, "bench_kernels: {}\nusage: bench_kernels [--smoke] [--threads N]\n", problem);
  return 2;
}

int main_of(std::span<char*> arguments) {
  Effort effort;
  std::size_t threads = 1;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--smoke") {
      effort.smoke = true;
    } else if (argument == "--threads" && i + 1 < arguments.size()) {
      threads = std::strtoul(arguments[++i], nullptr, 10);
      if (threads < 1 || threads > 1024) return usage("--threads takes a number from 1 to 1024");
    } else {
      return usage(fmt::format("{} is not an option", argument));
    }
  }
  const Result<platform::Isa> isa = platform::choose_isa(std::getenv("KVASIR_ISA"));
  if (!isa) return usage(isa.error().message);
  return run(kernels::kernel_set(*isa), threads, effort);
}

}  // namespace
}  // namespace kvasir::bench

int main(int argc, char** argv) { return kvasir::bench::main_of({argv, static_cast<std::size_t>(argc)}); }
