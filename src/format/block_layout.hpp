// Where a row lies inside a block, and where a block lies in memory. The only place that computes either.
// Pure values and functions, any thread.
//
// A block holds `block_tokens` consecutive token rows of one cache group, all of its layers:
//
//   block  = layer 0 | layer 1 | ...                                 (layer_bytes each)
//   layer  = KV head 0 | KV head 1 | ...                             (head_bytes each)
//   head   = K tiles | K scales | V rows | V scales                  (scales: formats that have them, one a row)
//   K tile = 16 keys: [head_dim][16 keys]                            (one channel of 16 keys is contiguous)
//   V rows = [block_tokens][head_dim]
//
// Every part starts at a multiple of 32 bytes (head_dim is a multiple of 8 in every supported model; 16 keys x 2 bytes
// = 32), so vector loads never straddle parts. Formats that are not offered (kv_format.hpp) have a layout for its sizes alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "format/kv_format.hpp"
#include "format/reach.hpp"

namespace kvasir::format {

inline constexpr std::uint32_t kKeysPerTile = 16;    // keys of one K tile
inline constexpr std::uint32_t kSpanTokens = 256;    // keys of one attention span, at absolute positions

// The layers that keep the same span of history and have the same row bytes.
struct CacheGroup {
  std::vector<std::uint32_t> layers;  // model layer indices, ascending
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;         // elements of a K row of one head, and of a V row
  KvFormat format;
  std::uint32_t window = 0;           // tokens of history kept, the current one included; 0 = all
  std::uint32_t block_tokens = 32;
  std::optional<std::uint32_t> v_dim = {};   // of a V row where that differs; 0: K and V are one (a latent)
  bool chunked = false;               // the window is a chunk: history is cut at multiples of it

  Reach reach() const { return {window, chunked}; }
};

// What is stored for a model: its cache groups. Layer l lives in group `group_of(l)` as that group's `slot_of(l)`-th layer.
struct KvGeometry {
  std::vector<CacheGroup> groups;
};

class BlockLayout {
 public:
  // Errors: bad_input if block_tokens is not 16, 32, 64, 128 or 256 or a size overflows; unsupported if head_dim is not a
  // positive multiple of 8, or v_dim not a multiple of 8.
  static Result<BlockLayout> create(const CacheGroup& group);

  std::size_t block_bytes() const { return block_bytes_; }
  std::size_t layer_bytes() const { return layer_bytes_; }
  std::size_t head_bytes() const { return head_bytes_; }
  std::uint32_t block_tokens() const { return block_tokens_; }
  std::uint32_t head_dim() const { return head_dim_; }
  std::uint32_t kv_heads() const { return kv_heads_; }
  std::uint32_t layers() const { return layers_; }
  KvFormat format() const { return format_; }

  // Bytes from the start of a block. `layer` is the slot in the group, `offset` the row in the block.
  std::size_t head_offset(std::uint32_t layer, std::uint32_t head) const { return layer * layer_bytes_ + head * head_bytes_; }
  // First element of a K row: its channel c lies `c * kKeysPerTile * element_bytes(k)` further on.
  std::size_t k_offset(std::uint32_t layer, std::uint32_t head, std::uint32_t offset) const {
    return head_offset(layer, head) + (offset / kKeysPerTile) * k_tile_bytes_ + (offset % kKeysPerTile) * element_bytes(format_.k);
  }
  std::size_t v_offset(std::uint32_t layer, std::uint32_t head, std::uint32_t offset) const {
    return head_offset(layer, head) + v_start_ + static_cast<std::size_t>(offset) * head_dim_ * element_bytes(format_.v);
  }
  std::size_t k_tile_bytes() const { return k_tile_bytes_; }
  std::size_t v_start() const { return v_start_; }

  // Bytes of one token row, all layers of the group: what one more token of a long sequence costs.
  std::size_t bytes_per_token() const { return block_bytes_ / block_tokens_; }
  // Of those, the scales.
  std::size_t scale_bytes_per_token() const { return scale_bytes_; }

 private:
  std::size_t block_bytes_ = 0, layer_bytes_ = 0, head_bytes_ = 0, k_tile_bytes_ = 0, v_start_ = 0, scale_bytes_ = 0;
  std::uint32_t block_tokens_ = 0, head_dim_ = 0, kv_heads_ = 0, layers_ = 0;
  KvFormat format_;
};

// Where the blocks of one group lie: superpages of equal size, each sliced into `blocks_per_superpage` blocks.
// block b is at base + (b / blocks_per_superpage) * superpage_bytes + (b % blocks_per_superpage) * block_bytes.
struct BlockAddressing {
  std::byte* base = nullptr;
  std::size_t superpage_bytes = 0;
  std::uint32_t blocks_per_superpage = 1;
  std::size_t block_bytes = 0;

  std::byte* address(BlockId block) const {
    const auto index = static_cast<std::uint32_t>(block);
    return base + static_cast<std::size_t>(index / blocks_per_superpage) * superpage_bytes +
           static_cast<std::size_t>(index % blocks_per_superpage) * block_bytes;
  }
};

// What a kernel sees of one group's memory: how to find a block, and how a block is laid out.
struct PagedKvView {
  BlockAddressing blocks;
  BlockLayout layout;
};

// The page table of one step and one cache group, planned once a step and used by every layer (CSR, as FlashInfer's):
// sequence s of the step owns kv_indices[kv_indptr[s] .. kv_indptr[s+1]), its blocks in token order from number
// first_block[s] on (those before it are left behind: no row of this step or a later one reaches them), and the last of
// them holds last_block_len[s] rows once this step has written (1 .. block_tokens).
struct PageTableView {
  const std::int32_t* kv_indptr = nullptr;       // [sequences + 1]
  const BlockId* kv_indices = nullptr;           // [kv_indptr[sequences]]
  const std::int32_t* last_block_len = nullptr;  // [sequences]
  const std::int32_t* first_block = nullptr;     // [sequences]
  std::int32_t sequences = 0;
};

}  // namespace kvasir::format
