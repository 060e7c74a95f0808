#include "tests/engine/continuation_cases.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "base/prng.hpp"
#include "engine/engine.hpp"
#include "store/footprint.hpp"
#include "tests/engine/tiny_engine.hpp"

namespace kvasir::engine::test {
namespace {

using kvasir::test::TinyModelSpec;

constexpr std::array kChunks = {1u, 7u, 16u, 33u, 256u, 0u};
constexpr std::array kThreads = {1u, 2u};
constexpr std::array kBlocks = {16u, 32u, 64u};
constexpr std::array kNeighbours = {0u, 1u, 31u};
constexpr std::array kKvTypes = {format::KvType::f32, format::KvType::f16, format::KvType::bf16};
constexpr std::array kComputes = {model::Compute::int8, model::Compute::f32};
constexpr std::array kGeometries = {Geometry::mha, Geometry::gqa, Geometry::mqa, Geometry::window,
                                    Geometry::window_and_full, Geometry::sinks, Geometry::mixed_heads};
constexpr std::array kGeometryNames = {"mha", "gqa", "mqa", "window", "window_and_full", "sinks", "mixed_heads"};

std::shared_ptr<const model::Model> tiny_model(const NumericId& id, platform::Isa isa) {
  static std::map<std::tuple<Geometry, model::Compute, platform::Isa>, std::shared_ptr<const model::Model>> loaded;
  std::shared_ptr<const model::Model>& model = loaded[{id.geometry, id.compute, isa}];
  if (model == nullptr) {
    const std::array specs = {TinyModelSpec::mha(), TinyModelSpec::gqa(), TinyModelSpec::mqa(), TinyModelSpec::window_only(),
                              TinyModelSpec::window_and_full(), TinyModelSpec::sinks(), TinyModelSpec::mixed_heads()};
    model = load_tiny(specs[static_cast<std::size_t>(id.geometry)], id.compute, isa);
  }
  return model;
}

PoolConfig config_for(const model::Model& model, format::KvType kv, const Work& work, const Text& text) {
  PoolConfig config;
  const std::uint32_t whole = text.prompt + text.answer;
  config.block_tokens = work.block_tokens;
  config.kv_format = {kv, kv};
  config.threads = work.threads;
  config.max_sequences = work.neighbours + 1;
  config.max_batched_tokens = std::max(work.chunk == 0 ? whole : work.chunk, config.max_sequences);
  config.logits_rows = config.max_batched_tokens;
  config.max_model_len = std::min(whole + 64, model.geometry().context);
  config.max_queued = 256;
  if (work.shuffled) config.block_order_seed = work.seed + 1;
  config.poison_free = true;
  const std::uint64_t rows = whole + std::uint64_t{work.neighbours} * 256 + std::uint64_t{work.block_tokens} * config.max_sequences;
  config.kv_cache_bytes = store::capacity_for_rows(model.geometry().kv_geometry(config.kv_format, work.block_tokens), rows).value();
  return config;
}

// Other requests, a few of them at a time, with prompts and answers of random lengths.
class Neighbours {
 public:
  Neighbours(const Work& work, std::uint32_t vocabulary) : random_(work.seed, 0xe1), vocabulary_(vocabulary), most_(work.neighbours) {}

  // Fills up, sometimes; the first time always.
  void visit(Engine& engine) {
    const EngineStats stats = engine.stats();
    const std::uint32_t open = stats.running + stats.waiting;
    for (std::uint32_t i = open; i < most_; ++i) {
      if (started_ && random_.below(3) != 0) continue;
      GenerateRequest request;
      request.prompt.resize(1 + random_.below(120));
      for (TokenId& token : request.prompt) token = static_cast<TokenId>(random_.below(vocabulary_));
      request.max_tokens = 1 + random_.below(60);
      if (random_.below(2) == 0) request.sampling = {.temperature = 1.0f, .seed = random_.next()};
      const RequestId id = engine.submit(std::move(request)).value();
      if (random_.below(4) == 0) doomed_.push_back(id);
    }
    started_ = true;
    if (!doomed_.empty() && random_.below(8) == 0) {
      engine.cancel(doomed_.back());   // false if it ended already
      doomed_.pop_back();
    }
  }

 private:
  PhiloxSequence random_;
  std::uint32_t vocabulary_, most_;
  bool started_ = false;
  std::vector<RequestId> doomed_;
};

std::uint64_t axis(std::uint64_t& index, std::size_t size) {
  const std::uint64_t value = index % size;
  index /= size;
  return value;
}

constexpr std::size_t kAxes = 9;
std::array<std::size_t, kAxes> axis_sizes() {
  return {kGeometries.size(), kKvTypes.size(), kComputes.size(), kChunks.size(), kThreads.size(),
          platform::available_isas().size(), kBlocks.size(), kNeighbours.size(), 2};
}

std::uint64_t index_of(const std::array<std::size_t, kAxes>& values) {
  const auto sizes = axis_sizes();
  std::uint64_t index = 0;
  for (std::size_t a = kAxes; a-- > 0;) index = index * sizes[a] + values[a];
  return index;
}

// Case `index` of all combinations, read as a mixed-radix number.
Case case_at(std::uint64_t index) {
  const std::vector<platform::Isa> isas = platform::available_isas();
  Case c;
  c.work.seed = index * 2'654'435'761u + 1;
  c.id.geometry = kGeometries[axis(index, kGeometries.size())];
  c.id.kv = kKvTypes[axis(index, kKvTypes.size())];
  c.id.compute = kComputes[axis(index, kComputes.size())];
  c.work.chunk = kChunks[axis(index, kChunks.size())];
  c.work.threads = kThreads[axis(index, kThreads.size())];
  c.work.isa = isas[axis(index, isas.size())];
  c.work.block_tokens = kBlocks[axis(index, kBlocks.size())];
  c.work.neighbours = kNeighbours[axis(index, kNeighbours.size())];
  c.work.shuffled = axis(index, 2) == 1;
  return c;
}

using Pair = std::array<std::size_t, 4>;   // axis, value, axis, value

std::set<Pair> pairs_of(const std::array<std::size_t, kAxes>& values) {
  std::set<Pair> pairs;
  for (std::size_t a = 0; a < kAxes; ++a) {
    for (std::size_t b = a + 1; b < kAxes; ++b) pairs.insert({a, values[a], b, values[b]});
  }
  return pairs;
}

}  // namespace

std::string NumericId::name() const {
  return fmt::format("tiny/{}/{}/{}", kGeometryNames[static_cast<std::size_t>(geometry)], format::to_string(kv),
                     compute == model::Compute::int8 ? "int8" : "f32");
}

std::string Work::name() const {
  return fmt::format("chunk {}, {} threads, {}, blocks of {}, {} neighbours, {}", chunk, threads, platform::to_string(isa),
                     block_tokens, neighbours, shuffled ? "shuffled" : "in order");
}

std::vector<NumericId> all_numeric_ids() {
  std::vector<NumericId> ids;
  for (const Geometry geometry : kGeometries) {
    for (const format::KvType kv : kKvTypes) {
      for (const model::Compute compute : kComputes) ids.push_back({geometry, kv, compute});
    }
  }
  return ids;
}

std::string logits_hash(std::shared_ptr<const model::Model> model, format::KvType kv, const Work& work, const Text& text) {
  auto engine = Engine::create(model, nullptr, config_for(*model, kv, work, text)).value();
  const std::uint32_t vocabulary = model->geometry().vocabulary;
  Neighbours neighbours(work, vocabulary);
  std::vector<TokenOutput> out;
  if (work.neighbours > 0) {
    neighbours.visit(*engine);
    for (std::uint64_t s = 0; s < 1 + work.seed % 5; ++s) engine->step(out);   // the others are at random offsets by now
    neighbours.visit(*engine);
  }
  GenerateRequest request;
  PhiloxSequence random(text.seed, 0x7e);
  for (std::uint32_t i = 0; i < text.prompt; ++i) request.prompt.push_back(static_cast<TokenId>(random.below(vocabulary)));
  request.max_tokens = text.answer;
  request.prompt_logits = true;
  const RequestId id = engine->submit(std::move(request)).value();

  Sha256 hash;
  std::uint32_t next = 0;
  engine->set_logits_observer([&](RequestId whose, std::uint32_t position, std::span<const float> logits) {
    if (whose != id) return;
    KV_CHECK(position == next++, "every position once, in order");
    hash.update(std::as_bytes(logits));
  });
  bool done = false;
  while (!done) {
    engine->step(out);
    for (const TokenOutput& o : out) done = done || (o.request == id && o.finish != FinishReason::none);
    if (work.neighbours > 0) neighbours.visit(*engine);
  }
  KV_CHECK(next == text.prompt + text.answer - 1, "no row is missing");
  engine->check_invariants();
  return to_hex(hash.finish());
}

std::string logits_hash(const NumericId& id, const Work& work, const Text& text) {
  return logits_hash(tiny_model(id, work.isa), id.kv, work, text);
}

std::vector<Case> all_cases() {
  std::uint64_t count = 1;
  for (const std::size_t size : axis_sizes()) count *= size;
  std::vector<Case> cases;
  for (std::uint64_t index = 0; index < count; ++index) cases.push_back(case_at(index));
  return cases;
}

// Greedy: each new case covers a pair still missing, and of some random fillings the one that covers most.
std::vector<Case> pairwise_cases() {
  const auto sizes = axis_sizes();
  std::set<Pair> missing;
  for (std::size_t a = 0; a < kAxes; ++a) {
    for (std::size_t b = a + 1; b < kAxes; ++b) {
      for (std::size_t x = 0; x < sizes[a]; ++x) {
        for (std::size_t y = 0; y < sizes[b]; ++y) missing.insert({a, x, b, y});
      }
    }
  }
  PhiloxSequence random(2026);
  std::vector<Case> cases;
  while (!missing.empty()) {
    const Pair must = *missing.begin();
    std::array<std::size_t, kAxes> best{};
    std::size_t best_covered = 0;
    for (int attempt = 0; attempt < 60; ++attempt) {
      std::array<std::size_t, kAxes> values;
      for (std::size_t a = 0; a < kAxes; ++a) values[a] = random.below(static_cast<std::uint32_t>(sizes[a]));
      values[must[0]] = must[1];
      values[must[2]] = must[3];
      std::size_t covered = 0;
      for (const Pair& pair : pairs_of(values)) covered += missing.count(pair);
      if (covered > best_covered) {
        best = values;
        best_covered = covered;
      }
    }
    for (const Pair& pair : pairs_of(best)) missing.erase(pair);
    cases.push_back(case_at(index_of(best)));
  }
  return cases;
}

}  // namespace kvasir::engine::test
