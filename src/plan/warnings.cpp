#include "plan/warnings.hpp"

#include <fmt/format.h>

namespace kvasir::plan {

std::vector<std::string> warnings_of(const PlanInput& input, const CapacityPlan& plan) {
  std::vector<std::string> out;
  if (input.length > input.shape.context) {
    out.push_back(fmt::format("length {} is beyond the {} tokens that the model was trained for", input.length, input.shape.context));
  }
  const std::uint64_t rounding = plan.kv_bytes - plan.kv_payload_bytes;
  if (plan.kv_bytes > 0 && static_cast<double>(rounding) > 0.02 * static_cast<double>(plan.kv_bytes)) {
    out.push_back(fmt::format("blocks of {} tokens leave {:.1f} % of the cache empty at this length; smaller blocks waste less",
                              input.kv.block_tokens, 100.0 * static_cast<double>(rounding) / static_cast<double>(plan.kv_bytes)));
  }
  if (input.weights.empty()) out.push_back("nothing says how many weights there are, so they are not in the total: --set parameters=70B, or weights by --set feed_forward=N");
  for (const std::string& field : input.shape.unverified) out.push_back(fmt::format("not verified at its source: {}", field));
  return out;
}

}  // namespace kvasir::plan
