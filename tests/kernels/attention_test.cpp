// Attention over paged KV: every class equals the scalar twin bit for bit, nothing a line may not see reaches it, and
// how rows are cut in tiles does not show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/exact/exact.hpp"
#include "kernels/reference/reference.hpp"
#include "tests/kernels/support.hpp"

namespace kvasir::kernels::test {
namespace {

class AttentionEveryClass : public EveryClass {};
KVASIR_FOR_EVERY_CLASS(AttentionEveryClass);

struct Heads {
  std::uint32_t query, kv;
};
constexpr Heads kHeads[] = {{6, 1}, {10, 2}, {14, 2}, {24, 4}, {9, 3}, {28, 4}, {33, 3}, {4, 4}};
constexpr std::uint32_t kHeadDims[] = {8, 16, 32, 64, 96, 128, 256};
constexpr std::uint32_t kBlockTokens[] = {16, 32, 64};
constexpr std::uint32_t kLengths[] = {1, 5, 15, 16, 17, 255, 256, 257, 600};
constexpr format::Reach kReaches[] = {{}, {1, false}, {16, false}, {100, false}, {}, {17, true}, {255, false}, {256, true}, {300, false}, {64, true}, {400, true}};
constexpr format::KvType kTypes[] = {format::KvType::f32, format::KvType::f16, format::KvType::bf16};

// One case: the last `rows` positions of a sequence of `length` tokens attend.
struct Case {
  Heads heads;
  KvSpec kv;
  std::uint32_t rows = 1, tile_rows = 1;
  format::Reach reach = {};
  bool sinks = false;

  AttentionRun run() const {
    AttentionRun run = {.heads = heads.query,
                        .rows = rows,
                        .first_position = kv.tokens - rows,
                        .tile_rows = tile_rows,
                        .scale = 1.0f / std::sqrt(static_cast<float>(kv.head_dim)),
                        .reach = reach};
    if (sinks) run.sinks = Random(kv.seed + 2000).normals(heads.query, 2);
    return run;
  }
  std::vector<float> queries() const {
    return Random(kv.seed + 1000).normals(std::size_t{rows} * heads.query * kv.head_dim, 2);
  }
  std::string name() const {
    return "heads " + std::to_string(heads.query) + "/" + std::to_string(heads.kv) + ", head_dim " +
           std::to_string(kv.head_dim) + ", block " + std::to_string(kv.block_tokens) + ", length " +
           std::to_string(kv.tokens) + ", rows " + std::to_string(rows) + " in tiles of " + std::to_string(tile_rows) +
           ", K " + std::string(format::to_string(kv.format.k)) + ", V " + std::string(format::to_string(kv.format.v)) +
           (reach.chunked ? ", chunk " : ", window ") + std::to_string(reach.window) + (sinks ? ", sinks" : "");
  }
};

// Every head shape meets every head size; the other dimensions are walked at strides coprime to each other, so that
// every value of each, and most pairs, occur. Rows are few enough that the twin takes milliseconds.
std::vector<Case> covering_cases() {
  std::vector<Case> cases;
  std::uint32_t i = 0;
  for (const Heads& heads : kHeads)
    for (std::uint32_t head_dim : kHeadDims) {
      Case c;
      c.heads = heads;
      c.kv = {.kv_heads = heads.kv,
              .head_dim = head_dim,
              .block_tokens = kBlockTokens[i % 3],
              .tokens = kLengths[(i * 4 + i / 9) % 9],
              .format = {.k = kTypes[i % 3], .v = kTypes[(i / 3 + i) % 3]},
              .seed = i + 1};
      const std::uint32_t affordable = 600'000 / (heads.query * head_dim * c.kv.tokens) + 1;
      c.rows = std::min({c.kv.tokens, affordable, 1 + i * 5 % 19});
      c.tile_rows = std::min(1 + i % 7, static_cast<std::uint32_t>(kMaxAttentionLines) / (heads.query / heads.kv));
      c.reach = kReaches[(i * 3 + i / 11) % std::size(kReaches)];
      c.sinks = i % 4 == 1;
      cases.push_back(c);
      ++i;
    }
  return cases;
}

TEST_P(AttentionEveryClass, EqualsTheTwin) {
  for (const Case& c : covering_cases()) {
    const KvMemory kv(c.kv);
    const std::vector<float> q = c.queries();
    const Comparison same = compare(attend(set(), kv, q, c.run()), attend(exact_kernels(), kv, q, c.run()));
    ASSERT_TRUE(same) << c.name() << ": " << same.message;
  }
}

// The state of one span, line by line: a line that sees no key of it says so, and the others have the twin's bits.
TEST_P(AttentionEveryClass, SpansWithUnseenLinesEqualTheTwin) {
  const KvMemory kv({.kv_heads = 1, .head_dim = 64, .block_tokens = 32, .tokens = 262, .format = {}, .seed = 3});
  const std::uint32_t rows = 12, heads = 3;  // positions 250 .. 261: the first six see nothing of span 1
  const std::vector<float> q = Random(4).normals(rows * heads * 64);
  const AttentionQuery query = {.kv = &kv.view(),
                                .layer = KvMemory::kLayer,
                                .blocks = kv.blocks(),
                                .heads = heads,
                                .q = q.data(),
                                .q_stride = heads * 64,
                                .first_position = 250,
                                .scale = 0.125f};
  const AttentionTile tile = {&query, 0, 0, rows};
  const std::size_t lines = tile.lines();
  std::vector<float> states[2];
  for (std::vector<float>& state : states) state.assign(lines * (2 + 64), -7.0f);
  const platform::AlignedArray<float> scratch(attention_scratch_floats(lines, 64));
  for (std::uint32_t span : {0u, 1u}) {
    const KernelSet* sets[] = {&set(), &exact_kernels()};
    for (int i : {0, 1}) {
      float* s = states[i].data();
      sets[i]->attention_span(tile, span, {.max = s, .sum = s + lines, .out = s + 2 * lines}, scratch.data());
    }
    for (std::size_t line = 0; line < lines; ++line) {
      const bool sees = span == 0 || line / heads >= 6;
      EXPECT_EQ(std::isinf(states[0][line]), !sees) << line;
      if (!sees) continue;
      EXPECT_EQ(states[0][line], states[1][line]) << "max, line " << line;
      EXPECT_EQ(states[0][lines + line], states[1][lines + line]) << "sum, line " << line;
      const std::size_t at = 2 * lines + line * 64;
      const Comparison same = compare(std::span(states[0]).subspan(at, 64), std::span(states[1]).subspan(at, 64));
      EXPECT_TRUE(same) << "line " << line << ": " << same.message;
    }
  }
}

// Slots behind the last token, blocks of nobody and the other layer hold NaN, infinity or zeros: the answer is the
// same.
TEST_P(AttentionEveryClass, UnusedSlotsDoNotTravel) {
  for (Case c : covering_cases()) {
    c.rows = std::min(c.rows, 3u);
    const std::vector<float> q = c.queries();
    c.kv.fill = std::byte{0};
    const std::vector<float> clean = attend(set(), KvMemory(c.kv), q, c.run());
    c.kv.fill = std::byte{0xff};  // NaN in every format
    const std::vector<float> dirty = attend(set(), KvMemory(c.kv), q, c.run());
    ASSERT_TRUE(std::all_of(dirty.begin(), dirty.end(), [](float x) { return std::isfinite(x); })) << c.name();
    const Comparison same = compare(dirty, clean);
    ASSERT_TRUE(same) << c.name() << ": " << same.message;
  }
}

// A NaN key or value that the later rows of a tile see must not reach the earlier rows of the same tile.
TEST_P(AttentionEveryClass, FutureKeysDoNotTravel) {
  for (format::KvType type : kTypes)
    for (std::uint32_t head_dim : {8u, 64u, 72u})
      for (std::uint32_t tokens : {20u, 262u}) {
        Case c;
        c.heads = {4, 2};
        c.kv = {.kv_heads = 2,
                .head_dim = head_dim,
                .block_tokens = 16,
                .tokens = tokens,
                .format = {type, type},
                .seed = tokens};
        c.rows = 19;
        c.tile_rows = 19;
        const std::vector<float> q = c.queries();
        KvMemory kv(c.kv);
        const std::vector<float> clean = attend(set(), kv, q, c.run());
        for (std::uint32_t row : {18u, 11u, 7u, 1u}) {  // ever more of the tile's keys become NaN
          kv.poison(tokens - 19 + row, std::byte{0xff});
          const std::vector<float> dirty = attend(set(), kv, q, c.run());
          const std::size_t before = std::size_t{row} * 4 * head_dim;
          const Comparison same = compare(std::span(dirty).first(before), std::span(clean).first(before));
          ASSERT_TRUE(same) << c.name() << ", NaN from row " << row << ": " << same.message;
          EXPECT_TRUE(std::isnan(dirty[before])) << "the row that sees the key must show it, or this test sees nothing";
        }
      }
}

// What a row has left behind must not reach it, whatever lies there: at every edge of windows and chunks, inside a tile of
// keys and at its ends, in one span and across two.
TEST_P(AttentionEveryClass, KeysLeftBehindDoNotTravel) {
  for (format::KvType type : kTypes)
    for (const format::Reach reach : {format::Reach{1, false}, {15, false}, {16, false}, {17, false}, {40, false}, {256, false}, {257, false}, {16, true}, {32, true}, {48, true}, {256, true}})
      for (std::uint32_t tokens : {49u, 64u, 290u}) {
        Case c;
        c.heads = {4, 2};
        c.kv = {.kv_heads = 2, .head_dim = 32, .block_tokens = 16, .tokens = tokens, .format = {type, type}, .seed = tokens};
        c.rows = 19;
        c.tile_rows = 19;
        c.reach = reach;
        const std::vector<float> q = c.queries();
        KvMemory kv(c.kv);
        const std::vector<float> clean = attend(set(), kv, q, c.run());
        for (std::uint32_t row : {0u, 5u, 18u}) {   // ever more keys become NaN: those before what this row sees
          const std::uint32_t position = tokens - 19 + row, first = reach.first_key(position);
          for (std::uint32_t key = 0; key < first; ++key) kv.poison(key, std::byte{0xff});
          std::vector<float> dirty = attend(set(), kv, q, c.run());
          const std::size_t from = std::size_t{row} * 4 * 32;
          const Comparison same = compare(std::span(dirty).subspan(from), std::span(clean).subspan(from));
          ASSERT_TRUE(same) << c.name() << ", NaN before row " << row << ": " << same.message;
        }
        kv.poison(reach.first_key(tokens - 1), std::byte{0xff});   // the last row's first key
        const std::vector<float> seen = attend(set(), kv, q, c.run());
        EXPECT_TRUE(std::isnan(seen[std::size_t{18} * 4 * 32])) << c.name() << ": a key within reach is seen";
      }
}

// Promise 1 at this level: one row at a time, all at once, or in any tiles.
TEST_P(AttentionEveryClass, TilesDoNotShow) {
  for (format::KvType type : kTypes)
    for (std::uint32_t head_dim : {24u, 64u}) {
      Case c;
      if (head_dim == 64) c.reach = {20, false};
      c.sinks = type == format::KvType::f16;
      c.heads = {9, 3};
      c.kv = {
          .kv_heads = 3, .head_dim = head_dim, .block_tokens = 32, .tokens = 280, .format = {type, type}, .seed = 6};
      c.rows = 32;
      const std::vector<float> q = c.queries();
      const KvMemory kv(c.kv);
      const std::vector<float> alone = attend(set(), kv, q, c.run());
      for (std::uint32_t tile_rows : {2u, 3u, 5u, 8u, 17u, 32u}) {
        c.tile_rows = tile_rows;
        const Comparison same = compare(attend(set(), kv, q, c.run()), alone);
        ASSERT_TRUE(same) << c.name() << ": " << same.message;
      }
    }
}

// The block size is a matter of the layout alone.
TEST_P(AttentionEveryClass, BlockSizesDoNotShow) {
  std::vector<float> first;
  for (std::uint32_t block_tokens : {16u, 32u, 64u, 128u, 256u}) {
    Case c;
    c.heads = {6, 2};
    c.kv = {.kv_heads = 2, .head_dim = 64, .block_tokens = block_tokens, .tokens = 300, .format = {}, .seed = 12};
    c.rows = 7;
    c.tile_rows = 4;
    const std::vector<float> out = attend(set(), KvMemory(c.kv), c.queries(), c.run());
    if (first.empty()) first = out;
    const Comparison same = compare(out, first);
    EXPECT_TRUE(same) << c.name() << ": " << same.message;
  }
}

TEST_P(AttentionEveryClass, MergeFollowsItsRules) {
  const std::size_t lines = 5, head_dim = 24;
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  Random random(3);
  // unseen next; unseen into; next far higher; into far higher (its exp is 0); near each other
  const std::vector<float> into_max = {1, kNone, -200, 300, 2.5f}, next_max = {kNone, 3, 5, 1, 2.0f};
  const std::vector<float> sums = random.normals(2 * lines), outs = random.normals(2 * lines * head_dim);
  std::vector<float> result[2];
  const KernelSet* sets[] = {&set(), &exact_kernels()};
  for (int i : {0, 1}) {
    std::vector<float> max = into_max, sum = sums, out = outs, other_max = next_max;
    sets[i]->attention_merge({max.data(), sum.data(), out.data()},
                             {other_max.data(), sum.data() + lines, out.data() + lines * head_dim}, lines, head_dim);
    result[i] = max;
    result[i].insert(result[i].end(), sum.begin(), sum.end());
    result[i].insert(result[i].end(), out.begin(), out.end());
  }
  const Comparison same = compare(result[0], result[1]);
  EXPECT_TRUE(same) << same.message;
  EXPECT_EQ(std::vector<float>(result[0].begin(), result[0].begin() + 5), (std::vector<float>{1, 3, 5, 300, 2.5f}));
  EXPECT_EQ(result[0][lines], sums[0]) << "a line whose next is unseen is left alone";
  EXPECT_EQ(result[0][lines + 1], sums[lines + 1]) << "a line that saw nothing yet takes next as it is";
  EXPECT_EQ(result[0][lines + 2], sums[lines + 2]) << "exp(-205) is 0";
  EXPECT_EQ(result[0][lines + 3], sums[3]);
}

// ---- accuracy, against double on the stored values

constexpr double kUnit = 0x1p-24;

// What the f32 algorithm may be off by, relative to the weighted mean of |v|: a weight p is off by its score's error
// (the dot's head_dim + 1 roundings on magnitudes up to `score`, the subtraction of up to 2 * score), one ulp of exp,
// and a product with one exp a merge; numerator and denominator both are; then their sums' roundings. Keys below e^-87
// vanish.
double attention_bound(std::size_t keys, std::size_t head_dim, double score) {
  const auto spans = static_cast<double>((keys + 255) / 256);
  const double weight =
      static_cast<double>(head_dim + 1 + 2) * kUnit * score + 2 * kUnit + spans * (2 * score * kUnit + 4 * kUnit);
  const double sums = 2 * static_cast<double>(std::min<std::size_t>(keys, 256)) * kUnit + 2 * spans * kUnit + 3 * kUnit;
  return (2 * weight + sums) * 1.02 + static_cast<double>(keys) * std::exp(-87.0);
}

// What is stored: a row through encode and decode.
std::vector<float> stored(std::vector<float> row, format::KvType type) {
  for (float& x : row) {
    if (type == format::KvType::f16) x = format::decode_f16(format::encode_f16(x));
    if (type == format::KvType::bf16) x = format::decode_bf16(format::encode_bf16(x));
  }
  return row;
}

TEST_P(AttentionEveryClass, IsAccurate) {
  std::uint32_t which = 0;
  for (std::uint32_t tokens : {1u, 17u, 256u, 600u})
    for (std::uint32_t head_dim : {16u, 64u}) {
      Case c;
      constexpr format::Reach kJudged[] = {{}, {16, false}, {17, true}, {300, false}, {255, false}};
      c.reach = kJudged[which++ % 5];
      c.sinks = which % 2 == 0;
      c.heads = {4, 2};
      c.kv = {.kv_heads = 2,
              .head_dim = head_dim,
              .block_tokens = 32,
              .tokens = tokens,
              .format = {format::KvType::f16, format::KvType::bf16},
              .seed = tokens};
      c.rows = std::min(tokens, 3u);
      c.tile_rows = 2;
      const KvMemory kv(c.kv);
      const std::vector<float> q = c.queries();
      const std::vector<float> out = attend(set(), kv, q, c.run());
      for (std::uint32_t row = 0; row < c.rows; ++row)
        for (std::uint32_t head = 0; head < 4; ++head) {
          const std::vector<float> k = stored(kv.k_rows(head / 2), format::KvType::f16);
          const std::vector<float> v = stored(kv.v_rows(head / 2), format::KvType::bf16);
          const AttentionRun run = c.run();
          const std::uint32_t position = run.first_position + row;
          const std::size_t first = c.reach.first_key(position), keys = position + 1 - first, at = (std::size_t{row} * 4 + head) * head_dim;
          std::vector<reference::Judged> wanted(head_dim);
          const double score = reference::attention(q.data() + at, k.data() + first * head_dim, v.data() + first * head_dim, keys, head_dim,
                                                    double{run.scale}, wanted.data(), c.sinks ? &run.sinks[head] : nullptr);
          for (std::size_t i = 0; i < head_dim; ++i)
            EXPECT_LE(std::fabs(double{out[at + i]} - wanted[i].value),
                      attention_bound(keys, head_dim, score) * wanted[i].magnitude)
                << c.name();
        }
    }
}

}  // namespace
}  // namespace kvasir::kernels::test
