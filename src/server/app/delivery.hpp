// How an answer reaches its client: as chunks while it comes, or whole at its end. Chunks are written where the events
// arrive, on the engine loop's thread; a whole answer is collected there and built by a worker, since its JSON takes time
// in proportion to its length.
// Thread rule: calls of one delivery are ordered by the caller, whatever threads they are on.
// Invariants: exactly one answer: the events up to every choice's last, or one failure. Nothing is called after either.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "server/api/chat_answer.hpp"
#include "server/api/completion_answer.hpp"
#include "server/app/workers.hpp"
#include "server/http/responder.hpp"

namespace kvasir::server {

class Delivery {
 public:
  virtual ~Delivery() = default;
  // Every part of the request was accepted: a stream's head can go out.
  virtual void begin() = 0;
  // Log probabilities of a prompt, before the first event of its choices.
  virtual void scored(std::size_t prompt, std::vector<api::PositionLogprobs> logprobs) = 0;
  // False: the client is gone.
  virtual bool push(const api::ChoiceEvent& event) = 0;
  // The request ends with this instead of the rest of its answer.
  virtual void fail(const api::ApiError& error) = 0;
};

std::unique_ptr<Delivery> make_delivery(std::shared_ptr<const api::ChatContext> context, ResponderPtr responder,
                                        Workers& workers);
std::unique_ptr<Delivery> make_delivery(std::shared_ptr<const api::CompletionContext> context, ResponderPtr responder,
                                        Workers& workers);

}  // namespace kvasir::server
