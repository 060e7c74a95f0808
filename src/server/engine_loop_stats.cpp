#include "server/engine_loop_stats.hpp"

namespace kvasir::server {

std::string_view to_string(EndReason reason) {
  switch (reason) {
    case EndReason::stop:
      return "stop";
    case EndReason::length:
      return "length";
    case EndReason::cancelled:
      return "cancelled";
    case EndReason::shutdown:
      return "shutdown";
    case EndReason::error:
      return "error";
  }
  return "?";
}

std::string_view to_string(LoopState state) {
  switch (state) {
    case LoopState::not_ready:
      return "not_ready";
    case LoopState::ready:
      return "ready";
    case LoopState::draining:
      return "draining";
    case LoopState::stopped:
      return "stopped";
    case LoopState::failed:
      return "failed";
  }
  return "?";
}

std::string_view to_string(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::queue_full_requests:
      return "queue_full_requests";
    case RefusalReason::queue_full_tokens:
      return "queue_full_tokens";
    case RefusalReason::never_fits:
      return "never_fits";
    case RefusalReason::bad_request:
      return "bad_request";
    case RefusalReason::draining:
      return "draining";
    case RefusalReason::not_ready:
      return "not_ready";
    case RefusalReason::loop_failed:
      return "loop_failed";
  }
  return "?";
}

std::string_view to_string(engine::QueueReason reason) {
  switch (reason) {
    case engine::QueueReason::none:
      return "none";
    case engine::QueueReason::sequence_limit:
      return "sequence_limit";
    case engine::QueueReason::token_budget:
      return "token_budget";
    case engine::QueueReason::step_time:
      return "step_time";
    case engine::QueueReason::blocks:
      return "blocks";
  }
  return "?";
}

}  // namespace kvasir::server
