#include "tests/kernels/support.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/check.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/simd/simd.hpp"

namespace kvasir::kernels::test {

void PrintTo(const KernelClass& c, std::ostream* out) { *out << c.name; }

std::vector<KernelClass> classes() {
  std::vector<KernelClass> found;
  for (platform::Isa isa : platform::available_isas())
    found.push_back({std::string(platform::to_string(isa)), &kernel_set(isa)});
#if defined(KVASIR_HAS_EMULATED_AVX512)
  if (platform::has_isa(platform::Isa::avx2)) found.push_back({"emulated_avx512", &avx512_emulated_kernels()});
#endif
  return found;
}

std::string class_name(const ::testing::TestParamInfo<KernelClass>& parameter) { return parameter.param.name; }

std::uint64_t Random::next() {  // splitmix64
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

float Random::uniform(float low, float high) {
  const auto unit = static_cast<float>(next() >> 40) * 0x1p-24f;
  return low + (high - low) * unit;
}

float Random::normal() {
  float sum = 0;
  for (int i = 0; i < 3; ++i) sum += uniform(-1, 1);
  return sum;
}

std::vector<float> Random::normals(std::size_t count, float scale) {
  std::vector<float> values(count);
  for (float& v : values) v = normal() * scale;
  return values;
}

Comparison compare(std::span<const float> got, std::span<const float> wanted) {
  if (got.size() != wanted.size()) return {false, "sizes differ"};
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto a = std::bit_cast<std::uint32_t>(got[i]);
    const auto b = std::bit_cast<std::uint32_t>(wanted[i]);
    if (a != b)
      return {false, "index " + std::to_string(i) + ": got " + std::to_string(got[i]) + ", bits " + std::to_string(a) +
                         "; wanted " + std::to_string(wanted[i]) + ", bits " + std::to_string(b)};
  }
  return {};
}

// ---- weights

namespace {

struct EncodingName {
  SourceEncoding encoding;
  const char* name;
};
constexpr EncodingName kEncodings[] = {
    {SourceEncoding::f32, "f32"},   {SourceEncoding::f16, "f16"},   {SourceEncoding::bf16, "bf16"},
    {SourceEncoding::q4_0, "q4_0"}, {SourceEncoding::q4_1, "q4_1"}, {SourceEncoding::q5_0, "q5_0"},
    {SourceEncoding::q5_1, "q5_1"}, {SourceEncoding::q8_0, "q8_0"}, {SourceEncoding::q4_k, "q4_k"},
    {SourceEncoding::q5_k, "q5_k"}, {SourceEncoding::q6_k, "q6_k"}, {SourceEncoding::q2_k, "q2_k"},
    {SourceEncoding::q3_k, "q3_k"}, {SourceEncoding::iq4_nl, "iq4_nl"}, {SourceEncoding::iq4_xs, "iq4_xs"},
};

// Byte offsets of the f16 scales in a stored block.
std::vector<std::size_t> scale_offsets(SourceEncoding encoding) {
  switch (encoding) {
    case SourceEncoding::q4_0:
    case SourceEncoding::q5_0:
    case SourceEncoding::q8_0:
    case SourceEncoding::iq4_nl:
    case SourceEncoding::iq4_xs:
      return {0};
    case SourceEncoding::q2_k:
      return {80, 82};
    case SourceEncoding::q3_k:
      return {108};
    case SourceEncoding::q6_k:
      return {208};
    case SourceEncoding::f32:
    case SourceEncoding::f16:
    case SourceEncoding::bf16:
      return {};
    default:
      return {0, 2};
  }
}

void put_u16(std::byte* to, std::uint16_t value) { std::memcpy(to, &value, sizeof value); }

std::uint16_t random_scale(Random& random) {
  switch (random.below(16)) {
    case 0:
      return 0;
    case 1:
      return static_cast<std::uint16_t>(random.below(1024));  // subnormal
    default:
      return format::encode_f16(random.normal() * 0.02f);
  }
}

}  // namespace

std::vector<SourceEncoding> all_encodings() {
  std::vector<SourceEncoding> all;
  for (const EncodingName& e : kEncodings) all.push_back(e.encoding);
  return all;
}

std::vector<SourceEncoding> integer_encodings() {
  std::vector<SourceEncoding> all = all_encodings();
  std::erase_if(all, [](SourceEncoding e) { return !is_integer(form_of(e)); });
  return all;
}

const char* name_of(SourceEncoding encoding) {
  for (const EncodingName& e : kEncodings)
    if (e.encoding == encoding) return e.name;
  return "?";
}

std::size_t source_row_bytes(SourceEncoding encoding, std::size_t k) {
  const SourceBlock block = source_block(encoding);
  return k / block.elements * block.bytes;
}

std::vector<std::byte> random_source(SourceEncoding encoding, std::size_t n, std::size_t k, std::uint64_t seed) {
  Random random(seed);
  const SourceBlock block = source_block(encoding);
  std::vector<std::byte> source(n * source_row_bytes(encoding, k));
  if (!is_integer(form_of(encoding))) {
    for (std::size_t i = 0; i < n * k; ++i) {
      const float value = random.normal();
      std::byte* to = source.data() + i * block.bytes;
      if (encoding == SourceEncoding::f32) std::memcpy(to, &value, sizeof value);
      if (encoding == SourceEncoding::f16) put_u16(to, format::encode_f16(value));
      if (encoding == SourceEncoding::bf16) put_u16(to, format::encode_bf16(value));
    }
    return source;
  }
  for (std::byte& b : source) b = static_cast<std::byte>(random.next());
  for (std::size_t at = 0; at < source.size(); at += block.bytes)
    for (std::size_t offset : scale_offsets(encoding)) put_u16(source.data() + at + offset, random_scale(random));
  return source;
}

Matrix pack(SourceEncoding encoding, std::size_t n, std::size_t k, std::span<const std::byte> source) {
  const WeightForm form = form_of(encoding);
  const std::size_t row_bytes = source_row_bytes(encoding, k);
  Matrix matrix;
  matrix.memory = platform::AlignedBuffer(packed_bytes(form, n, k));
  for (std::size_t tile = 0; tile < tile_count(n); ++tile)
    pack_tile(encoding, source.data() + tile * kTileOutputs * row_bytes, row_bytes,
              std::min(kTileOutputs, n - tile * kTileOutputs), k, matrix.memory.data() + tile * tile_bytes(form, k));
  matrix.view = {.form = form, .n = n, .k = k, .tiles = matrix.memory.data()};
  return matrix;
}

Matrix random_matrix(SourceEncoding encoding, std::size_t n, std::size_t k, std::uint64_t seed) {
  return pack(encoding, n, k, random_source(encoding, n, k, seed));
}

// ---- activations

Activations make_panels(const KernelSet& set, std::size_t rows, std::size_t k) {
  const std::size_t panel_rows = std::min(rows, set.panel_rows);
  const std::size_t scales = ActivationPanels::scale_elements(rows, k, panel_rows);
  Activations a;
  a.q = platform::AlignedArray<std::int8_t>(ActivationPanels::q_elements(rows, k, panel_rows));
  a.d = platform::AlignedArray<float>(scales);
  a.ds = platform::AlignedArray<float>(scales);
  a.sum = platform::AlignedArray<std::int32_t>(scales);
  a.sum_low = platform::AlignedArray<std::int32_t>(scales);
  std::memset(a.q.data(), 0x80, a.q.size());
  std::memset(a.d.data(), 0xff, scales * sizeof(float));
  std::memset(a.ds.data(), 0xff, scales * sizeof(float));
  std::memset(a.sum.data(), 0xff, scales * sizeof(std::int32_t));
  std::memset(a.sum_low.data(), 0xff, scales * sizeof(std::int32_t));
  a.panels = {.q = a.q.data(), .d = a.d.data(), .ds = a.ds.data(), .sum = a.sum.data(), .sum_low = a.sum_low.data(),
              .k = k, .panel_rows = panel_rows};
  return a;
}

Activations quantize(const KernelSet& set, const float* x, std::size_t stride, std::size_t rows, std::size_t k) {
  Activations a = make_panels(set, rows, k);
  set.quantize(x, stride, 0, rows, a.panels);
  return a;
}

// ---- KV memory

KvMemory::KvMemory(const KvSpec& spec) : spec_(spec) {
  format::CacheGroup group;
  group.layers = {0, 1};
  group.kv_heads = spec.kv_heads;
  group.head_dim = spec.head_dim;
  group.format = spec.format;
  group.block_tokens = spec.block_tokens;
  view_.layout = format::BlockLayout::create(group).value();

  constexpr std::uint32_t kPerSuperpage = 3;
  const std::uint32_t used = (spec.tokens + spec.block_tokens - 1) / spec.block_tokens;
  const std::uint32_t total = used + 2;
  view_.blocks.block_bytes = view_.layout.block_bytes();
  view_.blocks.blocks_per_superpage = kPerSuperpage;
  view_.blocks.superpage_bytes = kPerSuperpage * view_.layout.block_bytes() + 64;  // a tail, as real superpages have
  memory_ = platform::AlignedBuffer((total / kPerSuperpage + 1) * view_.blocks.superpage_bytes);
  std::memset(memory_.data(), std::to_integer<int>(spec.fill), memory_.bytes());
  view_.blocks.base = memory_.data();

  std::vector<BlockId> order(total);
  std::iota(order.begin(), order.end(), 0);
  Random shuffle(spec.seed + 500);
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[shuffle.below(i + 1)]);
  blocks_.assign(order.begin(), order.begin() + used);

  Random random(spec.seed);  // apart: the rows do not depend on the block size
  const std::size_t row = std::size_t{spec.kv_heads} * spec.head_dim;
  k_ = random.normals(spec.tokens * row);
  v_ = random.normals(spec.tokens * row);
  for (std::uint32_t position = 0; position < spec.tokens; ++position)
    for (std::uint32_t head = 0; head < spec.kv_heads; ++head) {
      const std::size_t from = position * row + std::size_t{head} * spec.head_dim;
      const std::uint32_t offset = position % spec.block_tokens;
      exact::store_kv(k_.data() + from, v_.data() + from, spec.head_dim, spec.format,
                      block_of(position) + view_.layout.k_offset(kLayer, head, offset),
                      block_of(position) + view_.layout.v_offset(kLayer, head, offset));
    }
}

std::byte* KvMemory::block_of(std::uint32_t position) const {
  return view_.blocks.address(blocks_[position / spec_.block_tokens]);
}

void KvMemory::poison(std::uint32_t position, std::byte fill) {
  const std::uint32_t offset = position % spec_.block_tokens;
  const std::size_t k_bytes = format::element_bytes(spec_.format.k);
  const std::size_t v_bytes = format::element_bytes(spec_.format.v);
  for (std::uint32_t head = 0; head < spec_.kv_heads; ++head) {
    std::byte* k = block_of(position) + view_.layout.k_offset(kLayer, head, offset);
    std::byte* v = block_of(position) + view_.layout.v_offset(kLayer, head, offset);
    for (std::uint32_t c = 0; c < spec_.head_dim; ++c) {
      std::memset(k + c * format::kKeysPerTile * k_bytes, std::to_integer<int>(fill), k_bytes);
      std::memset(v + c * v_bytes, std::to_integer<int>(fill), v_bytes);
    }
  }
}

std::vector<float> KvMemory::rows_of(const std::vector<float>& all, std::uint32_t head) const {
  std::vector<float> rows;
  for (std::uint32_t position = 0; position < spec_.tokens; ++position) {
    const auto from =
        all.begin() + static_cast<std::ptrdiff_t>((std::size_t{position} * spec_.kv_heads + head) * spec_.head_dim);
    rows.insert(rows.end(), from, from + spec_.head_dim);
  }
  return rows;
}

// ---- attention

namespace {

struct StateMemory {
  platform::AlignedArray<float> max, sum, out;
  StateMemory(std::size_t lines, std::size_t head_dim) : max(lines), sum(lines), out(lines * head_dim) {}
  SpanState state() const { return {.max = max.data(), .sum = sum.data(), .out = out.data()}; }
};

}  // namespace

std::vector<float> attend(const KernelSet& set, const KvMemory& kv, const std::vector<float>& q,
                          const AttentionRun& run) {
  const std::uint32_t head_dim = kv.spec().head_dim;
  std::vector<float> out(std::size_t{run.rows} * run.heads * head_dim, -77.0f);
  const std::uint32_t first_block = run.reach.first_key(run.first_position) / kv.spec().block_tokens;
  const AttentionQuery query = {.kv = &kv.view(),
                                .layer = KvMemory::kLayer,
                                .blocks = kv.blocks() + first_block,
                                .first_block = first_block,
                                .heads = run.heads,
                                .q = q.data(),
                                .q_stride = std::size_t{run.heads} * head_dim,
                                .out = out.data(),
                                .out_stride = std::size_t{run.heads} * head_dim,
                                .first_position = run.first_position,
                                .reach = run.reach,
                                .scale = run.scale,
                                .sinks = run.sinks.empty() ? nullptr : run.sinks.data()};
  KV_CHECK(q.size() == out.size(), "queries are [rows][heads][head_dim]");
  KV_CHECK(run.first_position + run.rows <= kv.spec().tokens, "rows stand in the sequence");
  for (std::uint32_t kv_head = 0; kv_head < kv.spec().kv_heads; ++kv_head)
    for (std::uint32_t begin = 0; begin < run.rows; begin += run.tile_rows) {
      const AttentionTile tile = {&query, kv_head, begin, std::min(run.rows, begin + run.tile_rows)};
      KV_CHECK(tile.lines() <= kMaxAttentionLines, "a tile has at most 96 lines");
      StateMemory merged(tile.lines(), head_dim);
      StateMemory next(tile.lines(), head_dim);
      platform::AlignedArray<float> scratch(attention_scratch_floats(tile.lines(), head_dim));
      std::memset(scratch.data(), 0xff, scratch.size() * sizeof(float));
      set.attention_span(tile, query.first_span(begin), merged.state(), scratch.data());
      for (std::uint32_t span = query.first_span(begin) + 1; span <= query.last_span(tile.row_end - 1); ++span) {
        set.attention_span(tile, span, next.state(), scratch.data());
        set.attention_merge(merged.state(), next.state(), tile.lines(), head_dim);
      }
      set.attention_finish(tile, merged.state());
    }
  return out;
}

}  // namespace kvasir::kernels::test
