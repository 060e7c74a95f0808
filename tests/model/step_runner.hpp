// Several sequences through the forward pass, step by step, over page tables made by hand: each cache group has its own block
// size of memory, blocks that no row reaches any more are taken out of the table and filled with NaN, and blocks are handed
// out in an order drawn from a seed. What a test does with a step: which rows of which sequences are in it.
// Thread rule: one thread.
#pragma once

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "base/prng.hpp"
#include "model/forward.hpp"
#include "platform/aligned_buffer.hpp"

namespace kvasir::model::test {

class StepRunner {
 public:
  struct Shape {
    std::uint32_t sequences = 1;
    std::uint32_t rows = 512;         // of a step
    std::uint32_t context = 512;
    std::uint32_t block_tokens = 16;
    format::KvFormat kv = {format::KvType::f16, format::KvType::f16};
    std::uint64_t seed = 1;           // of the blocks' order
  };

  StepRunner(std::shared_ptr<const Model> model, const Shape& shape, platform::ThreadPool& pool)
      : shape_(shape),
        forward_(model, {.rows = shape.rows, .sequences = shape.sequences, .logits_rows = shape.rows, .context = shape.context}, pool) {
    for (const format::CacheGroup& group : model->geometry().kv_geometry(shape.kv, shape.block_tokens).groups) add_group(group);
  }

  // Rows [first, first + count) of tokens[s] for each part of the step.
  struct Part {
    std::uint32_t sequence = 0, first = 0, count = 0;
  };
  // Logits of every row of the step, in the order of the parts.
  std::vector<std::vector<float>> step(const std::vector<std::vector<TokenId>>& tokens, const std::vector<Part>& parts) {
    std::vector<StepSequence> sequences;
    for (const Part& part : parts)
      sequences.push_back({.tokens = std::span(tokens[part.sequence]).subspan(part.first, part.count), .first_position = part.first,
                           .logits_rows = part.count});
    std::vector<Table> tables(groups_.size());
    std::vector<format::PageTableView> views;
    std::vector<format::PagedKvView> kv;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      fill(groups_[g], parts, tables[g]);
      views.push_back({.kv_indptr = tables[g].indptr.data(), .kv_indices = tables[g].indices.data(), .last_block_len = tables[g].last.data(),
                       .first_block = tables[g].first.data(), .sequences = static_cast<std::int32_t>(parts.size())});
      kv.push_back(groups_[g].view);
    }
    forward_.run({.sequences = sequences, .tables = views, .kv = kv});
    std::vector<std::vector<float>> out;
    for (std::uint32_t row = 0; row < forward_.logits_rows(); ++row) out.emplace_back(forward_.logits(row).begin(), forward_.logits(row).end());
    return out;
  }

  // Blocks in use of each group.
  std::vector<std::size_t> used() const {
    std::vector<std::size_t> out;
    for (const Group& group : groups_) out.push_back(group.total - group.free.size());
    return out;
  }

 private:
  struct Group {
    format::Reach reach;
    platform::AlignedBuffer memory;
    format::PagedKvView view;
    std::size_t total = 0;
    std::vector<BlockId> free;
    std::vector<std::uint32_t> first;               // of a sequence: number of its first block
    std::vector<std::vector<BlockId>> blocks;       // of a sequence, from that number on
  };
  struct Table {
    std::vector<std::int32_t> indptr = {0}, last, first;
    std::vector<BlockId> indices;
  };

  void add_group(const format::CacheGroup& group) {
    Group out;
    out.reach = group.reach();
    const format::BlockLayout layout = format::BlockLayout::create(group).value();
    out.total = shape_.sequences * ((shape_.context + shape_.block_tokens - 1) / shape_.block_tokens);
    out.memory = platform::AlignedBuffer(out.total * layout.block_bytes());
    std::memset(out.memory.data(), 0xff, out.memory.bytes());   // NaN in any format
    out.view = {.blocks = {.base = out.memory.data(), .superpage_bytes = out.memory.bytes(),
                           .blocks_per_superpage = static_cast<std::uint32_t>(out.total), .block_bytes = layout.block_bytes()},
                .layout = layout};
    PhiloxSequence random(shape_.seed, groups_.size());
    for (std::size_t i = 0; i < out.total; ++i) {
      out.free.push_back(static_cast<BlockId>(i));
      std::swap(out.free.back(), out.free[random.below(static_cast<std::uint32_t>(out.free.size()))]);
    }
    out.first.resize(shape_.sequences);
    out.blocks.resize(shape_.sequences);
    groups_.push_back(std::move(out));
  }

  void fill(Group& group, const std::vector<Part>& parts, Table& table) {
    for (const Part& part : parts) {
      std::vector<BlockId>& blocks = group.blocks[part.sequence];
      std::uint32_t& first = group.first[part.sequence];
      while (first < group.reach.first_key(part.first) / shape_.block_tokens && !blocks.empty()) {
        std::memset(group.view.blocks.address(blocks.front()), 0xff, group.view.blocks.block_bytes);
        group.free.push_back(blocks.front());
        blocks.erase(blocks.begin());
        ++first;
      }
      const std::uint32_t end = part.first + part.count;
      while (first + blocks.size() < (end + shape_.block_tokens - 1) / shape_.block_tokens) {
        blocks.push_back(group.free.back());
        group.free.pop_back();
      }
      table.indices.insert(table.indices.end(), blocks.begin(), blocks.end());
      table.indptr.push_back(static_cast<std::int32_t>(table.indices.size()));
      table.last.push_back(static_cast<std::int32_t>((end - 1) % shape_.block_tokens + 1));
      table.first.push_back(static_cast<std::int32_t>(first));
    }
  }

  Shape shape_;
  Forward forward_;
  std::vector<Group> groups_;
};

}  // namespace kvasir::model::test
