// The continuation promise as cases: how a sequence is cut into work must not show in its logits.
//
// A case has two kinds of axes. The first three make the numeric id: other arithmetic, other bits. The rest only decide
// how the work is done; two cases that differ in nothing else must give the same SHA-256 over all logits rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/kv_format.hpp"
#include "model/model.hpp"
#include "platform/isa.hpp"

namespace kvasir::engine::test {

enum class Geometry : std::uint8_t { mha, gqa, mqa, window, window_and_full, sinks, mixed_heads };

struct NumericId {
  Geometry geometry = Geometry::mha;
  format::KvType kv = format::KvType::f16;
  model::Compute compute = model::Compute::int8;
  std::string name() const;   // "tiny/gqa/f16/int8"
};
std::vector<NumericId> all_numeric_ids();

struct Work {
  std::uint32_t chunk = 0;        // tokens of a step at most; 0 = the whole prompt
  std::uint32_t threads = 1;
  platform::Isa isa = platform::Isa::scalar;
  std::uint32_t block_tokens = 32;
  std::uint32_t neighbours = 0;   // other sequences, coming and going at random offsets
  bool shuffled = false;          // physical blocks in random order
  std::uint64_t seed = 1;         // of neighbours and of the order of blocks
  std::string name() const;
};

// What is computed: a prompt and some answer tokens, all rows' logits.
struct Text {
  std::uint32_t prompt = 560;   // with the answer past two span edges (256, 512)
  std::uint32_t answer = 40;
  std::uint64_t seed = 11;
};

// SHA-256 over the logits of rows 0 .. prompt + answer - 2, each row's floats in order. Aborts if a row is missing.
std::string logits_hash(std::shared_ptr<const model::Model> model, format::KvType kv, const Work& work, const Text& text);
// The same for the tiny model of an id; models are loaded once for each class and kept.
std::string logits_hash(const NumericId& id, const Work& work, const Text& text = {});

// The plainest way to do the work: one thread, scalar, whole prompt, alone.
inline Work plain_work() { return {}; }

struct Case {
  NumericId id;
  Work work;
};
// Every combination of values.
std::vector<Case> all_cases();
// Fewer cases, in which every pair of values of two axes occurs together.
std::vector<Case> pairwise_cases();

}  // namespace kvasir::engine::test
