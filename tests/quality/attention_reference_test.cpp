// The attention kernels against PyTorch's scaled_dot_product_attention: grouped heads, several new tokens after a past,
// the mask aligned to the bottom right. Fixtures: sdpa-*.bin, tests/data/quality/SOURCE.md.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernels.hpp"
#include "tests/quality/reference_fixture.hpp"

namespace kvasir::quality::test {
namespace {

struct SdpaFixture {
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0, past = 0, rows = 0;
  std::vector<float> q, k, v, out, wrong;
};

SdpaFixture read_sdpa(const std::string& name) {
  const std::vector<float> raw = read_array<float>(name);
  std::uint32_t sizes[5] = {};
  std::memcpy(sizes, raw.data(), sizeof(sizes));
  SdpaFixture fixture = {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], {}, {}, {}, {}, {}};
  const std::size_t query = std::size_t{fixture.rows} * fixture.heads * fixture.head_dim;
  const std::size_t keys = std::size_t{fixture.past + fixture.rows} * fixture.kv_heads * fixture.head_dim;
  auto from = raw.begin() + 5;
  for (auto [array, size] : {std::pair{&fixture.q, query},
                             {&fixture.k, keys},
                             {&fixture.v, keys},
                             {&fixture.out, query},
                             {&fixture.wrong, query}}) {
    array->assign(from, from + static_cast<std::ptrdiff_t>(size));
    from += static_cast<std::ptrdiff_t>(size);
  }
  EXPECT_EQ(from, raw.end());
  return fixture;
}

// One layer's cache of one sequence, keys stored by the kernel set, NaN everywhere else.
struct Cache {
  platform::AlignedBuffer memory;
  format::PagedKvView view;
  std::vector<BlockId> blocks;

  Cache(const SdpaFixture& fixture, format::KvFormat kv, const kernels::KernelSet& kernels) {
    constexpr std::uint32_t kBlockTokens = 32;
    const std::uint32_t keys = fixture.past + fixture.rows;
    auto layout = format::BlockLayout::create({.layers = {0},
                                               .kv_heads = fixture.kv_heads,
                                               .head_dim = fixture.head_dim,
                                               .format = kv,
                                               .block_tokens = kBlockTokens});
    EXPECT_TRUE(layout.ok());
    blocks.resize((keys + kBlockTokens - 1) / kBlockTokens);
    std::iota(blocks.rbegin(), blocks.rend(), 0);
    memory = platform::AlignedBuffer(layout->block_bytes() * blocks.size());
    std::memset(memory.data(), 0xFF, memory.bytes());
    view = {.blocks = {.base = memory.data(),
                       .superpage_bytes = memory.bytes(),
                       .blocks_per_superpage = static_cast<std::uint32_t>(blocks.size()),
                       .block_bytes = layout->block_bytes()},
            .layout = *layout};
    for (std::uint32_t key = 0; key < keys; ++key) {
      std::byte* block = view.blocks.address(blocks[key / kBlockTokens]);
      for (std::uint32_t head = 0; head < fixture.kv_heads; ++head) {
        const std::size_t from = (std::size_t{key} * fixture.kv_heads + head) * fixture.head_dim;
        kernels.store_kv(&fixture.k[from], &fixture.v[from], fixture.head_dim, kv,
                         block + layout->k_offset(0, head, key % kBlockTokens),
                         block + layout->v_offset(0, head, key % kBlockTokens));
      }
    }
  }
};

// All spans of all rows of one KV head, merged in order, as the forward pass does.
void attend(const kernels::KernelSet& kernels, const kernels::AttentionTile& tile) {
  const std::size_t lines = tile.lines(), dim = tile.query->kv->layout.head_dim();
  platform::AlignedArray<float> scratch(kernels::attention_scratch_floats(lines, dim));
  platform::AlignedArray<float> whole(lines * (dim + 2)), part(lines * (dim + 2));
  const auto state = [&](const platform::AlignedArray<float>& memory) {
    return kernels::SpanState{memory.data() + lines * dim, memory.data() + lines * (dim + 1), memory.data()};
  };
  const std::uint32_t last = tile.query->first_position + tile.row_end - 1;
  for (std::uint32_t span = 0; span <= last / format::kSpanTokens; ++span) {
    kernels.attention_span(tile, span, state(span == 0 ? whole : part), scratch.data());
    if (span > 0) kernels.attention_merge(state(whole), state(part), lines, dim);
  }
  kernels.attention_finish(tile, state(whole));
}

std::vector<float> attend_all(const SdpaFixture& fixture, const Cache& cache, const kernels::KernelSet& kernels) {
  std::vector<float> out(fixture.q.size(), std::numeric_limits<float>::quiet_NaN());
  const std::size_t stride = std::size_t{fixture.heads} * fixture.head_dim;
  const kernels::AttentionQuery query = {.kv = &cache.view,
                                         .layer = 0,
                                         .blocks = cache.blocks.data(),
                                         .heads = fixture.heads,
                                         .q = fixture.q.data(),
                                         .q_stride = stride,
                                         .out = out.data(),
                                         .out_stride = stride,
                                         .first_position = fixture.past,
                                         .scale = 1 / std::sqrt(static_cast<float>(fixture.head_dim))};
  for (std::uint32_t head = 0; head < fixture.kv_heads; ++head) {
    attend(kernels, {.query = &query, .kv_head = head, .row_begin = 0, .row_end = fixture.rows});
  }
  return out;
}

float worst_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::isnan(a[i]) ? a[i] : std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

class AttentionReference : public testing::TestWithParam<const char*> {};

// Outputs are averages of values of order one, with weights whose relative error is that of exp and of a score's sum:
// head_dim additions of terms up to about 4, so some 1e-6. The wrong alignment differs by more than 1.4.
TEST_P(AttentionReference, ChunkAfterPastIsThatOfPyTorch) {
  const SdpaFixture fixture = read_sdpa(GetParam());
  for (const platform::Isa isa : platform::available_isas()) {
    const kernels::KernelSet& kernels = kernels::kernel_set(isa);
    for (const format::KvFormat kv : {format::KvFormat{format::KvType::f32, format::KvType::f32},
                                      format::KvFormat{format::KvType::f16, format::KvType::f16}}) {
      SCOPED_TRACE(std::string(platform::to_string(isa)) + ", " + std::string(format::to_string(kv.k)));
      const Cache cache(fixture, kv, kernels);
      const std::vector<float> out = attend_all(fixture, cache, kernels);
      EXPECT_LE(worst_difference(out, fixture.out), 1e-5f);
      EXPECT_GE(worst_difference(out, fixture.wrong), 1.0f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sdpa, AttentionReference,
                         testing::Values("sdpa-h6-kv2-d16-past3.bin", "sdpa-h6-kv2-d16-past253.bin",
                                         "sdpa-h6-kv2-d16-past300.bin", "sdpa-h6-kv2-d64-past3.bin",
                                         "sdpa-h6-kv2-d64-past300.bin"),
                         [](const testing::TestParamInfo<const char*>& one) {
                           std::string name = std::string(one.param).substr(5);
                           name.resize(name.size() - 4);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace kvasir::quality::test
