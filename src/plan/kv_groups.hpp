// What a model stores of its past, as cache groups: the same layouts that an engine allocates from, for models that no
// engine here runs too.
// Thread rule: pure; any thread.
//
// Layers share a group if their rows have the same bytes and the same span. Recurrent layers store a state of fixed size
// a sequence instead of rows.
// Source: layouts from format/block_layout.hpp, blocks from format/block_count.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/model_shape.hpp"
#include "base/result.hpp"
#include "format/block_layout.hpp"

namespace kvasir::plan {

struct KvChoice {
  format::KvFormat format;
  std::uint32_t block_tokens = 32;
  // Kept at f16 whatever the format: layers by number, and those with a window or chunk.
  std::vector<std::uint32_t> skip_layers = {};
  bool skip_windows = false;
};

enum class GroupKind : std::uint8_t { full, window, chunk, latent, index };
std::string_view to_string(GroupKind kind);

struct PlannedGroup {
  GroupKind kind = GroupKind::full;
  format::CacheGroup group;      // window as the model has it; 0 for all
  format::BlockLayout layout;
  std::uint32_t merged = 1;      // tokens that a stored row stands for

  // Of one sequence of so many tokens. length: any number below 2^32.
  std::uint64_t rows(std::uint64_t length) const;     // what it may look back on
  std::uint64_t blocks(std::uint64_t length) const;   // most that they lie in
  // Most blocks for `more` rows beyond `length`, as a draft's before it is checked; a window holds them besides.
  std::uint64_t blocks_beyond(std::uint64_t length, std::uint64_t more) const;
  // Most blocks besides while a step adds so many rows of a prompt; 0 where all of history stays.
  std::uint64_t step_blocks(std::uint64_t length, std::uint64_t step_rows) const;
  // Blocks of a sequence that no other shares whose first `prompt` tokens it has in common: all but the prompt's full
  // blocks. prompt <= length.
  std::uint64_t private_blocks(std::uint64_t length, std::uint64_t prompt) const;
  // One more token of a long sequence; 0 where a window bounds it.
  std::uint64_t growth_bytes() const;
};

struct KvGroups {
  std::vector<PlannedGroup> groups;
  std::uint64_t state_bytes = 0;   // of a sequence: recurrent layers, whatever its length
  std::uint32_t recurrent_layers = 0;

  format::KvGeometry geometry() const;
  // Of one sequence of so many tokens, without the rest of its last blocks: what the rows themselves take. Errors:
  // bad_input if it overflows.
  Result<std::uint64_t> payload_bytes(std::uint64_t length) const;
  Result<std::uint64_t> block_bytes(std::uint64_t length) const;
  std::uint64_t growth_bytes() const;
  std::uint64_t growth_below_windows_bytes() const;   // one more token of a sequence that no window bounds yet
};

// Errors: unsupported, bad_input: the layout's (a head dimension that is no multiple of 8), naming the layer; a layer to
// skip that the model does not have.
Result<KvGroups> kv_groups(const artifact::ModelShape& shape, const KvChoice& choice);

}  // namespace kvasir::plan
