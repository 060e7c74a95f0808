// One request for answers, from its place in the queue to its last token.
//
//   made, watched ----> submit() --events--> delivery ... every stream ended
//        \_______________ cancel(): the client left, at any moment ____/
//
// A stream of the engine is one answer, or a beam search with all n of them: those end one by one, before their stream does.
//
// Thread rule: watch() and submit() on one thread at a time; cancel() on any; events come on the engine loop's. A lock
// orders them, held for no longer than one chunk takes to write.
// Invariants: whoever leaves, whenever, every stream of the request is cancelled in the engine; the client gets exactly
// one answer; nothing is written after its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.hpp"
#include "server/app/app_context.hpp"
#include "server/app/delivery.hpp"
#include "server/app/request_meter.hpp"
#include "server/http/responder.hpp"

namespace kvasir::server {

// A request of the HTTP layer that was let in.
struct Entry {
  std::string id, tenant;
  std::uint64_t arrived_ns = 0;
  ResponderPtr responder;
  TenantLimits::Slot slot;  // of its tenant
  Place place;              // in the engine's queue, for the first answer
};

// What is submitted: all that a request asks for.
struct Work {
  std::vector<engine::GenerateRequest> requests;  // [prompts * streams], those of a prompt together
  bool search = false;                            // each is a beam search with all n answers
  RequestShape shape;
  std::uint64_t seed = 0;    // for the log
  bool seed_drawn = false;
  std::string_view prompt_field;  // "prompt" or "messages", for what is said about its size
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // Both outlive it.
  Generation(AppContext& app, ServedModel& model, Entry entry);

  // From now on a client that leaves is noticed. Called once, before anything else.
  void watch();
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void cancel();

  // A place for the streams beyond the first, before their prompts are tokenized. `field`: to blame if they are too many.
  std::optional<api::ApiError> reserve(std::size_t streams, std::string_view field);
  // Submits everything, or nothing: the error to answer with. Called once.
  std::optional<api::ApiError> submit(Work work, std::unique_ptr<Delivery> delivery);

  // Answers with the error instead; everything that is held is given back before. REQUIRES: nothing was submitted.
  void refuse(const api::ApiError& error);
  const Entry& entry() const { return entry_; }

 private:
  class Stream;
  struct Scores {
    std::vector<api::PositionLogprobs> positions;
    bool told = false;
  };

  std::optional<api::ApiError> refused(const Refusal& refusal, std::string_view prompt_field);
  std::optional<Refusal> claim(const std::vector<engine::GenerateRequest>& requests);
  std::optional<Refusal> submit_all(std::vector<engine::GenerateRequest> requests);
  void on_token(std::size_t index, const TokenEvent& event);
  void on_end(std::size_t index, const EndEvent& event);
  void push_end(std::size_t index, const EndEvent& event);
  void push(const api::ChoiceEvent& event);
  void tell_scores(std::size_t index);
  void tell_ended(std::size_t index);
  void end_all();
  void write_log() const;

  AppContext& app_;
  ServedModel& model_;
  Entry entry_;
  Place more_;  // in the queue, for the streams beyond the first
  std::atomic<bool> cancelled_{false};

  std::mutex mutex_;  // guards what follows
  std::vector<StreamId> streams_;
  std::unique_ptr<Delivery> delivery_;  // null before submit() and once the answer is over
  std::optional<RequestMeter> meter_;
  std::vector<Scores> scores_;  // [streams]: log probabilities of prompts as they come
  std::vector<bool> scored_;    // [prompts]
  std::vector<std::string> stop_;
  RequestShape shape_;
  std::uint64_t seed_ = 0;
  bool seed_drawn_ = false;
  bool search_ = false;
  std::size_t open_ = 0;     // streams that go on
  std::size_t answers_ = 0;  // of searches, whose end was not told
  std::vector<std::optional<api::ChoiceEvent>> ended_;  // [streams]: of a search, the end to be told next
};

}  // namespace kvasir::server
