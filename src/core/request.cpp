#include "core/request.hpp"

namespace kvasir::core {

std::string_view to_string(RequestState state) {
  switch (state) {
    case RequestState::queued:
      return "queued";
    case RequestState::prefilling:
      return "prefilling";
    case RequestState::decoding:
      return "decoding";
    case RequestState::finished:
      return "finished";
    case RequestState::unborn:
      return "unborn";
  }
  return "?";
}

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::none:
      return "none";
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
    case FinishReason::error:
      return "error";
  }
  return "?";
}

}  // namespace kvasir::core
