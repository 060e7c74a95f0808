// What the comparisons with other engines share: the arrays of tests/data/quality (its SOURCE.md has shapes and
// origin), one sequence run through the forward pass, and the reference's full-vocabulary logits from its stored hidden
// states. Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "artifact/gguf.hpp"
#include "format/block_layout.hpp"
#include "model/forward.hpp"
#include "model/model.hpp"
#include "platform/aligned_buffer.hpp"
#include "platform/isa.hpp"
#include "platform/thread_pool.hpp"

namespace kvasir::quality::test {

inline std::string fixture_path(const std::string& name) { return KVASIR_SOURCE_DIR "/tests/data/quality/" + name; }

// A bare little-endian array. Fails the test and returns nothing if the file is missing or not whole elements.
template <class T>
std::vector<T> read_array(const std::string& name) {
  std::ifstream file(fixture_path(name), std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_TRUE(!bytes.empty() && bytes.size() % sizeof(T) == 0)
      << fixture_path(name) << ": " << bytes.size() << " bytes";
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// A model file that is not part of the repository: in $KVASIR_MODELS, or models/ beside the sources.
inline std::string model_path(const std::string& file) {
  const char* folder = std::getenv("KVASIR_MODELS");
  return (folder != nullptr ? std::string(folder) : std::string(KVASIR_SOURCE_DIR "/models")) + "/" + file;
}

// Threads of the comparisons on real models: $KVASIR_TEST_THREADS, or 2. No result depends on it.
inline std::size_t test_threads() {
  const char* threads = std::getenv("KVASIR_TEST_THREADS");
  return threads != nullptr ? std::max(1UL, std::strtoul(threads, nullptr, 10)) : 2;
}

// `context`: positions that will be asked for; 0: the file's.
inline std::shared_ptr<const model::Model> load_model(const artifact::GgufFile& file, model::Compute compute, std::uint32_t context = 0) {
  auto isa = platform::choose_isa(std::getenv("KVASIR_ISA"));
  EXPECT_TRUE(isa.ok());
  auto loaded = model::Model::load(file, {.compute = compute, .isa = *isa, .context = context});
  EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
  return loaded.ok() ? *loaded : nullptr;
}

// One sequence through the forward pass in steps of `step_rows`, over a cache that holds NaN where nothing was written
// and in blocks that a window has left behind, and whose blocks lie in descending order.
class SequenceRunner {
 public:
  struct Shape {
    format::KvFormat kv;
    std::uint32_t block_tokens = 32;
    std::uint32_t context = 0;     // tokens of the longest sequence
    std::uint32_t step_rows = 64;  // tokens of one step
  };

  SequenceRunner(std::shared_ptr<const model::Model> model, const Shape& shape, platform::ThreadPool& pool)
      : shape_(shape),
        forward_(model,
                 {.rows = shape.step_rows, .sequences = 1, .logits_rows = shape.step_rows, .context = shape.context},
                 pool) {
    for (const format::CacheGroup& group : model->geometry().kv_geometry(shape.kv, shape.block_tokens).groups) {
      auto layout = format::BlockLayout::create(group);
      EXPECT_TRUE(layout.ok());
      reaches_.push_back(group.reach());
      const std::uint32_t blocks = (shape.context + shape.block_tokens - 1) / shape.block_tokens;
      memory_.emplace_back(layout->block_bytes() * blocks);
      views_.push_back({.blocks = {.base = memory_.back().data(),
                                   .superpage_bytes = memory_.back().bytes(),
                                   .blocks_per_superpage = blocks,
                                   .block_bytes = layout->block_bytes()},
                        .layout = *layout});
      blocks_.resize(blocks);
    }
    std::iota(blocks_.rbegin(), blocks_.rend(), 0);
  }

  // Runs `tokens` from position 0; visit(position of the step's first row, rows) may read logits(0 .. rows - 1).
  template <class Visit>
  void run(std::span<const TokenId> tokens, Visit visit) {
    for (platform::AlignedBuffer& memory : memory_)
      std::memset(memory.data(), 0xFF, memory.bytes());  // NaN in any format
    for (std::size_t done = 0; done < tokens.size(); done += shape_.step_rows) {
      const auto step = tokens.subspan(done, std::min<std::size_t>(shape_.step_rows, tokens.size() - done));
      run_step(step, static_cast<std::uint32_t>(done));
      visit(done, step.size());
    }
  }

  std::span<const float> logits(std::size_t row) const { return forward_.logits(static_cast<std::uint32_t>(row)); }

 private:
  void run_step(std::span<const TokenId> step, std::uint32_t first) {
    const std::uint32_t end = first + static_cast<std::uint32_t>(step.size());
    const std::int32_t used = static_cast<std::int32_t>((end + shape_.block_tokens - 1) / shape_.block_tokens);
    const std::int32_t last = static_cast<std::int32_t>((end - 1) % shape_.block_tokens + 1);
    std::vector<std::int32_t> first_blocks;
    std::vector<std::array<std::int32_t, 2>> indptrs;
    for (std::size_t g = 0; g < views_.size(); ++g) {
      first_blocks.push_back(static_cast<std::int32_t>(reaches_[g].first_key(first) / shape_.block_tokens));
      indptrs.push_back({0, used - first_blocks[g]});
      for (std::int32_t b = 0; b < first_blocks[g]; ++b)
        std::memset(views_[g].blocks.address(blocks_[static_cast<std::size_t>(b)]), 0xFF, views_[g].blocks.block_bytes);
    }
    std::vector<format::PageTableView> tables;
    for (std::size_t g = 0; g < views_.size(); ++g)
      tables.push_back({.kv_indptr = indptrs[g].data(), .kv_indices = blocks_.data() + first_blocks[g], .last_block_len = &last,
                        .first_block = &first_blocks[g], .sequences = 1});
    const model::StepSequence sequence = {
        .tokens = step, .first_position = first, .logits_rows = static_cast<std::uint32_t>(step.size())};
    forward_.run({.sequences = {&sequence, 1}, .tables = tables, .kv = views_});
  }

  Shape shape_;
  model::Forward forward_;
  std::vector<platform::AlignedBuffer> memory_;
  std::vector<format::PagedKvView> views_;
  std::vector<format::Reach> reaches_;
  std::vector<BlockId> blocks_;
};

// The reference's logits: the head's dequantized values times the stored hidden states, no code of the engine's but the
// dequantization. Float sums over the width in order: off by some 1e-5, far below what the comparisons look for.
class ReferenceHead {
 public:
  // hidden: [positions][width]
  ReferenceHead(const artifact::GgufFile& file, std::vector<float> hidden) : hidden_(std::move(hidden)) {
    head_ = file.find_tensor("output.weight");
    if (head_ == nullptr) head_ = file.find_tensor("token_embd.weight");
    width_ = head_->dims[0];
    vocabulary_ = head_->dims[1];
  }

  std::size_t positions() const { return hidden_.size() / width_; }
  std::size_t vocabulary() const { return vocabulary_; }

  // Rows [first, first + count): afterwards logits(row - first) holds them.
  void compute(std::size_t first, std::size_t count, platform::ThreadPool& pool) {
    const std::size_t groups = (count + kLanes - 1) / kLanes;
    std::vector<Lanes> inputs(groups * width_);  // [group][width][lane]
    for (std::size_t row = 0; row < count; ++row) {
      for (std::size_t c = 0; c < width_; ++c) {
        inputs[row / kLanes * width_ + c][row % kLanes] = hidden_[(first + row) * width_ + c];
      }
    }
    logits_.resize(groups * kLanes * vocabulary_);
    pool.run([&](std::size_t thread) {
      std::vector<float> weights(width_);
      const platform::Range range = platform::part(vocabulary_, thread, pool.threads());
      const std::size_t row_bytes = head_->bytes.size() / vocabulary_;
      for (std::size_t token = range.begin; token < range.end; ++token) {
        artifact::dequantize(head_->type, head_->bytes.subspan(token * row_bytes, row_bytes), weights);
        for (std::size_t group = 0; group < groups; ++group) multiply(weights, &inputs[group * width_], group, token);
      }
    });
  }

  std::span<const float> logits(std::size_t row) const { return {&logits_[row * vocabulary_], vocabulary_}; }

 private:
  static constexpr std::size_t kLanes = 32;  // positions at once: independent chains, so that a sum's order stays fixed
  using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

  void multiply(std::span<const float> weights, const Lanes* inputs, std::size_t group, std::size_t token) {
    Lanes sum = {};
    for (std::size_t c = 0; c < width_; ++c) sum += inputs[c] * weights[c];
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      logits_[(group * kLanes + lane) * vocabulary_ + token] = sum[lane];
  }

  const artifact::GgufTensor* head_ = nullptr;
  std::size_t width_ = 0, vocabulary_ = 0;
  std::vector<float> hidden_;
  std::vector<float> logits_;
};

}  // namespace kvasir::quality::test
