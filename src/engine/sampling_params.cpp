#include "engine/sampling_params.hpp"

#include <fmt/format.h>

namespace kvasir::engine {
namespace {

Error out_of_range(std::string_view key, double value, std::string_view range) {
  return Error{ErrorCode::bad_input, fmt::format("{} is {}, valid: {}", key, value, range)};
}

}  // namespace

// The comparisons are written so that NaN fails them.
Status validate(const SamplingParams& params) {
  if (!(params.temperature >= 0 && params.temperature <= kMaxTemperature)) {
    return out_of_range("temperature", static_cast<double>(params.temperature),
                        fmt::format("0 (greedy) to {}", kMaxTemperature));
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return out_of_range("top_p", static_cast<double>(params.top_p), "above 0, up to 1 (all)");
  }
  if (!(params.min_p >= 0 && params.min_p <= 1)) {
    return out_of_range("min_p", static_cast<double>(params.min_p), "0 (all) to 1");
  }
  if (params.logprobs < -1 || params.logprobs > kMaxTopLogprobs) {
    return out_of_range("logprobs", params.logprobs,
                        fmt::format("-1 (none), or 0 to {} alternatives", kMaxTopLogprobs));
  }
  return ok_status();
}

}  // namespace kvasir::engine
