// Internal to the engine layer: what an engine is made of. Order matters: later members use earlier ones.
// Thread rule: the engine's.
#pragma once

#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/footprint.hpp"
#include "core/core.hpp"
#include "engine/answer.hpp"
#include "engine/beam_search.hpp"
#include "engine/engine.hpp"
#include "engine/logit_rules.hpp"
#include "engine/sampler.hpp"
#include "engine/step_batch.hpp"
#include "model/forward.hpp"
#include "platform/thread_pool.hpp"
#include "store/kv_store.hpp"

namespace kvasir::engine {

inline constexpr std::uint32_t kNoPromptLogits = std::numeric_limits<std::uint32_t>::max();

// A request from submit() to its last output: what core does not need to know of it.
struct Live {
  // rows: most that it may ever store at one time.
  Live(RequestId request_id, const GenerateRequest& request, std::uint64_t rows, std::uint32_t max_tokens,
       const text::Tokenizer* tokenizer);

  RequestId id;
  SamplingParams sampling;
  SamplingParams scoring;             // of prompt rows: their logprobs alone; logprobs < 0 if none are wanted
  std::optional<LogitRules> rules;
  std::uint32_t prompt_logits_from;   // logits of the prompt's rows from here on are wanted; the last row's always
  std::uint64_t bound_rows;   // most rows it may ever store
  Answer answer;
  std::optional<BeamSearch> beams;
  GenerateRequest beam_request;          // what asked for them, without the prompt
  bool offered = false;                  // they have this step's logits
  std::deque<std::string> beam_texts;    // of their answers' tokens: outputs point into them
  bool reported = false;      // its last output has been given
  std::string error;
};

struct Engine::State {
  // config: every 0 replaced by what it stands for. core: over store's blocks.
  State(const PoolConfig& config, std::shared_ptr<const model::Model> model,
        std::shared_ptr<const text::Tokenizer> tokenizer, store::KvStore store, core::Core core, StepBatch batch);

  PoolConfig config;
  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  platform::ThreadPool pool;
  store::KvStore store;
  core::Core core;
  StepBatch batch;
  std::optional<std::uint64_t> allocated_before_workspace;   // readings around the two members between them
  model::Forward forward;
  Sampler sampler;
  std::optional<std::uint64_t> allocated_after_workspace;
  std::vector<MemoryLine> memory;
  LogitsObserver observer;

  std::unordered_map<RequestId, std::unique_ptr<Live>> live;
  std::vector<std::unique_ptr<Live>> ended;      // since the last step began: outputs point into them
  std::vector<SampleRow> rows;                   // of the last step; outputs point into them
  std::vector<Live*> row_requests;               // whose each row is
  std::vector<core::TokenResult> results;
  std::vector<std::uint64_t> live_blocks;        // [group] bounds of all live requests, added up
  std::vector<std::vector<BlockId>> active;      // [group] scratch of poisoning: blocks that may be about to be freed
  const cache::AdmissionBudget whole;            // what the cache can hold while it holds nothing
  std::vector<RequestId> finished;               // scratch
  EngineStats totals;                            // counters only
  bool in_step = false;

  std::uint32_t groups() const { return store.groups(); }
  // The record of a request, or of the beams that it is one of.
  Live& live_of(RequestId id) { return *live.at(core.find(id)->leader); }
  // Rows that one request alone could have.
  std::uint64_t max_rows() const { return store.plan().max_rows(config.max_batched_tokens); }
  std::uint64_t active_bytes() const;
  std::uint64_t bound_blocks(const Live& request, std::uint32_t group) const;
  // Makes the memory behind the claims of all live requests and this one resident. Errors: the store's; nothing changed.
  Status populate_for(const Live& request);
  // Drops what the engine holds for a request that the core has finished.
  void forget(RequestId id);

  // The parts of a step, in order.
  void sample();
  void add_row(const sched::Chunk& chunk, std::uint32_t position, std::span<const float> logits);
  // Beam searches: their logits instead of rows to sample; how they go on, told to the core; their answers when they are over.
  void begin_beams(Live& request, const GenerateRequest& asked, std::uint32_t max_tokens);
  void offer_to_beams(Live& request, RequestId beam, std::span<const float> logits);
  void advance_beams(std::vector<TokenOutput>& out);
  void emit_beams(Live& request, std::vector<TokenOutput>& out);
  void emit(std::vector<TokenOutput>& out);
  void emit_answer(const SampleRow& row, Live& request, TokenOutput& output);
  void emit_ended(std::vector<TokenOutput>& out);
  // Poisoning, for tests: remembers the blocks in use; fills those that are free by now, before others can be given them.
  void remember_active();
  void poison_freed();
};

}  // namespace kvasir::engine
