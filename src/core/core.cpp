#include "core/core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "cache/footprint.hpp"

namespace kvasir::core {
namespace {

cache::KvCacheConfig cache_config_of(const CoreConfig& config) {
  cache::KvCacheConfig cache = config.cache;
  cache.max_sequences = config.limits.max_num_seqs;
  cache.max_step_rows = config.limits.max_num_batched_tokens;
  return cache;
}

}  // namespace

void Core::erase_id(std::vector<RequestId>& list, RequestId id) {
  const auto at = std::ranges::find(list, id);
  KV_CHECK(at != list.end(), "a request is in the list of its state");
  list.erase(at);
}

Result<Core> Core::create(const CoreConfig& config) {
  KV_TRY(sched::validate(config.limits));
  KV_TRY(sched::validate(config.policy));
  if (config.max_requests < config.limits.max_num_seqs)
    return Error{ErrorCode::bad_input, fmt::format("max_requests = {}; at least max_num_seqs = {} is needed",
                                                   config.max_requests, config.limits.max_num_seqs)};
  const cache::KvCacheConfig cache_config = cache_config_of(config);
  KV_ASSIGN(cache::KvCache cache, cache::KvCache::create(cache_config));
  return Core(config, std::move(cache));
}

std::uint64_t Core::metadata_bytes(const CoreConfig& config) {
  const cache::KvCacheConfig cache_config = cache_config_of(config);
  constexpr std::uint64_t kRequest = sizeof(Request) + sizeof(std::uint32_t) + 3 * sizeof(RequestId);
  constexpr std::uint64_t kSequence = sizeof(sched::RunningRequest) + sizeof(sched::QueuedRequest) +
                                      sizeof(sched::Chunk) +
                                      sizeof(RequestId);  // views and the plan: a chunk, a place among the admitted
  return cache::KvCache::metadata_bytes(cache_config) + config.max_requests * kRequest +
         config.limits.max_num_seqs * kSequence + sizeof(sched::QueuedRequest);
}

Core::Core(const CoreConfig& config, cache::KvCache cache)
    : cache_(std::move(cache)),
      limits_(config.limits),
      policy_(config.policy),
      queue_limits_(config.queue),
      context_keep_(config.context_keep),
      requests_(config.max_requests),
      cost_(config.assumed_cost) {
  for (std::vector<RequestId>* list : {&queued_, &running_, &finished_}) list->reserve(config.max_requests);
  free_slots_.reserve(config.max_requests);
  for (std::uint32_t slot = config.max_requests; slot-- > 0;) free_slots_.push_back(slot);
  running_views_.reserve(limits_.max_num_seqs);
  queued_views_.reserve(limits_.max_num_seqs + std::size_t{1});  // one more than can be admitted: why it waits is told
  plan_.reserve(limits_);
}

const Request* Core::find(RequestId id) const {
  const Request& request = requests_[slot_of(id)];
  return id.valid() && request.id == id ? &request : nullptr;
}

Request& Core::at(RequestId id) {
  Request& request = requests_[slot_of(id)];
  KV_CHECK(request.id == id, "no such request");
  return request;
}

SubmitVerdict Core::can_submit(const RequestSpec& spec) const {
  const bool beams_fit = spec.beams >= 1 && spec.beams <= limits_.max_num_seqs && (spec.beams == 1 || spec.family == 0);
  if (spec.prompt.empty() || !sched::validate_priority(spec.priority).ok() || !beams_fit)
    return {RefusalReason::bad_request, 0, 0, {}};
  const cache::FitVerdict fit = cache_.budget().check({.rows = bound_rows(spec.prompt.size(), spec.max_new_tokens, 0, spec.beams),
                                                       .prompt_tokens = spec.prompt.size(),
                                                       .sequences = spec.beams});
  if (cache::never_fits(fit.fit))
    return {fit.fit == cache::Fit::too_long ? RefusalReason::context_length : RefusalReason::never_fits, fit.wanted,
            fit.have, fit};
  if (free_slots_.size() < spec.beams)
    return {RefusalReason::known_requests, requests_.size() - free_slots_.size() + spec.beams, requests_.size(), {}};
  if (queue_limits_.max_queued_requests > 0 && queued_.size() >= queue_limits_.max_queued_requests)
    return {RefusalReason::queue_requests, queued_.size() + 1, queue_limits_.max_queued_requests, {}};
  const std::uint64_t tokens = queued_tokens_ + spec.prompt.size();
  if (queue_limits_.max_queued_tokens > 0 && !queued_.empty() && tokens > queue_limits_.max_queued_tokens)
    return {RefusalReason::queue_tokens, tokens, queue_limits_.max_queued_tokens, {}};
  return {};
}

Result<RequestId> Core::submit(const RequestSpec& spec) {
  if (const SubmitVerdict verdict = can_submit(spec); !verdict.ok()) {
    refused_.add(verdict.reason);
    if (verdict.reason != RefusalReason::bad_request) return to_error(verdict);
    KV_TRY(sched::validate_priority(spec.priority));
    if (spec.prompt.empty()) return Error{ErrorCode::bad_input, "the prompt has 0 tokens; at least 1 is needed"};
    return Error{ErrorCode::bad_input, fmt::format("beams is {}, valid: 1 to max_num_seqs = {}, not in a family", spec.beams,
                                                   limits_.max_num_seqs)};
  }
  Request& request = new_request(spec);
  request.state = RequestState::queued;
  if (spec.beams > 1) {
    Beams& beams = beams_.emplace_back();
    beams.members.push_back(request.id);
    while (beams.members.size() < spec.beams) {
      Request& member = new_request(spec);
      member.leader = request.id;
      member.state = RequestState::unborn;
      beams.members.push_back(member.id);
    }
    beams.next.reserve(spec.beams);
  }
  insert_in_order(queued_, request.id);
  queued_tokens_ += request.prompt_tokens;
  return request.id;
}

Request& Core::new_request(const RequestSpec& spec) {
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  Request& request = requests_[slot];
  request.id = request.leader = RequestId(serial_++ * requests_.size() + slot);
  request.prompt_tokens = request.prefill = static_cast<std::uint32_t>(spec.prompt.size());
  request.max_new_tokens = static_cast<std::uint32_t>(spec.max_new_tokens);  // the context limit bounds both
  request.priority = spec.priority;
  request.arrived_us = spec.arrived_us;
  request.family = spec.family;
  request.beams = spec.beams;
  request.place = sched::place_of(policy_, request.id, spec.priority, spec.arrived_us);
  // With a shifting context never more than that and the token that is one too many.
  request.tokens.reserve(std::min<std::uint64_t>(std::uint64_t{request.prompt_tokens} + request.max_new_tokens,
                                                 cache_.max_sequence_rows() + 1));
  request.tokens.assign(spec.prompt.begin(), spec.prompt.end());
  return request;
}

void Core::insert_in_order(std::vector<RequestId>& list, RequestId id) {
  const auto place = [this](RequestId listed) { return at(listed).place; };
  list.insert(std::ranges::upper_bound(list, at(id).place, {}, place), id);
}

// Blocks taken out of use since submit may have made a request unservable; waiting would block the queue for ever.
void Core::drop_unservable_heads() {
  while (!queued_.empty()) {
    Request& head = at(queued_.front());
    const cache::FitVerdict verdict = cache_.budget().check(demand_of(head));
    if (!cache::never_fits(verdict.fit)) return;
    head.refusal = verdict;
    finish(head, FinishReason::error);
  }
}

const sched::StepPlan& Core::plan(std::uint64_t now_us) {
  KV_CHECK(!in_flight_, "one step is in flight at a time: apply() or abandon() it first");
  cache_.clear_copies();
  drop_unservable_heads();
  if (!queued_.empty()) cache_.compact(at(queued_.front()).prefill, answer_bound(at(queued_.front())));
  running_views_.clear();
  for (const RequestId id : running_) {
    const Request& r = at(id);
    running_views_.push_back({id, r.computed, static_cast<std::uint32_t>(r.tokens.size()),
                              r.state == RequestState::decoding, r.max_new_tokens > 0});
  }
  view_queue();
  sched::plan({running_views_, queued_views_, cache_.budget(), limits_, cost_.coefficients()}, now_us, plan_);
  start_step();
  return plan_;
}

void Core::start_step() {
  for (const RequestId id : plan_.admitted) {
    Request& request = at(id);
    const Sharing sharing = sharing_of(request);
    Result<SequenceId> sequence =
        request.beams > 1  ? cache_.admit_forking(request.prefill, answer_bound(request), request.beams, beams_of(id).reserve)
        : sharing.rows > 0 ? cache_.admit_sharing(sharing.from, sharing.rows, request.prefill, answer_bound(request))
                           : cache_.admit(request.prefill, answer_bound(request));
    KV_CHECK(sequence.ok(), "the budget that the plan spent is the cache's");
    request.sequence = *sequence;
    request.computed = request.shared_rows = sharing.rows;
    shared_rows_ += sharing.rows;
    request.state = RequestState::prefilling;
    erase_id(queued_, id);
    queued_tokens_ -= request.prefill;
    insert_in_order(running_, id);
  }
  for (const sched::Chunk& chunk : plan_.chunks) {
    Request& request = at(chunk.request);
    KV_CHECK(chunk.first_position == request.computed, "a chunk goes on where the last one ended");
    cache_.reserve_rows(request.sequence, chunk.token_count);
    request.in_flight = chunk.token_count;
  }
  in_flight_ = !plan_.empty();
  KV_CHECK(in_flight_ || cache_.copies().empty(), "blocks move only before a step");
}

void Core::apply(std::span<const TokenResult> results, double step_s) {
  KV_CHECK(in_flight_, "apply() needs a step in flight");
  in_flight_ = false;
  ++steps_;
  std::size_t next = 0;
  for (const sched::Chunk& chunk : plan_.chunks) {
    const TokenResult* result = nullptr;
    if (chunk.wants_logits && at(chunk.request).beams == 1) {
      KV_CHECK(next < results.size() && results[next].request == chunk.request,
               "one result for each chunk that wants logits, in plan order");
      result = &results[next++];
    }
    apply_chunk(at(chunk.request), chunk, result);
  }
  KV_CHECK(next == results.size(), "no results beyond the plan's");
  settle_beams();
  cost_.observe(plan_.work, step_s);
}

void Core::apply_chunk(Request& request, const sched::Chunk& chunk, const TokenResult* result) {
  request.in_flight = 0;
  request.computed += chunk.token_count;
  if (request.cancel_requested && request.beams == 1) return finish(request, FinishReason::cancelled);
  cache_.commit(request.sequence);
  if (request.computed < request.prefill) return;
  request.state = RequestState::decoding;
  if (result != nullptr) {
    KV_CHECK(request.generated() < request.max_new_tokens, "no token beyond the limit");
    request.tokens.push_back(result->token);
    if (result->stop) return finish(request, FinishReason::stop);
  }
  if (request.beams > 1) return;
  if (request.generated() == request.max_new_tokens) return finish(request, FinishReason::length);
  if (request.tokens.size() > cache_.max_sequence_rows()) shift_context(request);
}

void Core::abandon() {
  KV_CHECK(in_flight_, "abandon() needs a step in flight");
  in_flight_ = false;
  for (const sched::Chunk& chunk : plan_.chunks) {
    Request& request = at(chunk.request);
    request.in_flight = 0;
    cache_.truncate(request.sequence, request.computed);
    if (request.cancel_requested && request.beams == 1) finish(request, FinishReason::cancelled);
  }
  for (Beams& beams : beams_) beams.next.clear(), beams.end = FinishReason::none;
  settle_beams();
}

bool Core::cancel(RequestId id) {
  if (find(id) == nullptr || find(id)->state == RequestState::finished) return false;
  Request& request = at(id);
  if (request.in_flight > 0)
    request.cancel_requested = true;
  else
    finish(request, FinishReason::cancelled);
  return true;
}

void Core::finish(Request& request, FinishReason reason) {
  if (request.beams > 1) give_up_beams(request.id);
  else leave(request);
  request.state = RequestState::finished;
  request.reason = reason;
  finished_.push_back(request.id);
}

// Out of the queue, or out of the cache and of those that run. The caller says what becomes of it.
void Core::leave(Request& request) {
  if (request.running()) {
    cache_.release(request.sequence);
    request.sequence = SequenceId();
    erase_id(running_, request.id);
  } else {
    erase_id(queued_, request.id);
    queued_tokens_ -= request.prefill;
  }
}

void Core::forget(RequestId id) {
  KV_CHECK(at(id).state == RequestState::finished, "only a finished request is forgotten");
  erase_id(finished_, id);
  drop(at(id));
}

void Core::drop(Request& request) {
  const std::uint32_t slot = slot_of(request.id);
  request = Request();
  free_slots_.push_back(slot);
}

CoreStats Core::stats() const {
  return {.queued = static_cast<std::uint32_t>(queued_.size()),
          .running = static_cast<std::uint32_t>(running_.size()),
          .finished = static_cast<std::uint32_t>(finished_.size()),
          .awaiting_prompt = awaiting_prompt_,
          .in_flight_chunks = in_flight_ ? static_cast<std::uint32_t>(plan_.chunks.size()) : 0,
          .queued_tokens = queued_tokens_,
          .submitted = serial_,
          .shared_rows = shared_rows_,
          .context_shifts = context_shifts_,
          .shifted_rows = shifted_rows_,
          .refused = refused_,
          .steps = steps_};
}

void Core::check_invariants() const {
  const auto listed = [](const std::vector<RequestId>& list, const Request& r) {
    return std::ranges::count(list, r.id) == 1;
  };
  const auto place = [this](RequestId id) { return find(id)->place; };
  KV_CHECK(std::ranges::is_sorted(queued_, {}, place), "the queue is in its order");
  KV_CHECK(std::ranges::is_sorted(running_, {}, place), "admitted requests are in their order");
  std::size_t known = 0, unborn = 0;
  std::uint64_t queued_tokens = 0;
  for (const Request& r : requests_) {
    if (!r.id.valid()) continue;
    ++known;
    unborn += r.state == RequestState::unborn ? 1 : 0;
    KV_CHECK(r.beams == 1 || find(r.leader) != nullptr, "beams end together");
    if (r.state == RequestState::queued) queued_tokens += r.prefill;
    KV_CHECK(r.place == sched::place_of(policy_, r.id, r.priority, r.arrived_us), "a place follows from the policy");
    KV_CHECK(find(r.id) == &r, "a request is in the slot of its id");
    KV_CHECK(listed(queued_, r) == (r.state == RequestState::queued), "queued requests are in the queue");
    KV_CHECK(listed(running_, r) == r.running(), "admitted requests are in the running list");
    KV_CHECK(listed(finished_, r) == (r.state == RequestState::finished), "finished requests are in the finished list");
    KV_CHECK(r.sequence.valid() == r.running(), "a request holds a cache sequence while it is admitted");
    KV_CHECK((r.reason != FinishReason::none) == (r.state == RequestState::finished), "what ended has a reason");
    KV_CHECK(r.tokens.size() + r.dropped >= r.prompt_tokens && r.generated() <= r.max_new_tokens, "output within its limit");
    KV_CHECK(r.computed + r.in_flight <= r.tokens.size(), "only known tokens are computed");
    KV_CHECK(r.in_flight == 0 || in_flight_, "rows are in flight only with a step");
    KV_CHECK(!r.running() || cache_.rows(r.sequence) == r.computed + r.in_flight, "the cache has the rows computed");
    KV_CHECK(!r.running() || cache_.bound(r.sequence) == bound_rows(r), "the claim is the bound");
  }
  KV_CHECK(known == queued_.size() + running_.size() + finished_.size() + unborn, "queued + running + finished + unborn = known");
  KV_CHECK(queued_tokens == queued_tokens_, "queued tokens are those of queued requests");
  KV_CHECK(known + free_slots_.size() == requests_.size(), "known + free slots = all slots");
  KV_CHECK(running_.size() == cache_.sequences(), "one cache sequence for each running request");
  cache_.check_invariants();
}

}  // namespace kvasir::core
