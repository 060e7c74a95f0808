#include "cli/plan_answer.hpp"

namespace kvasir::cli {

using report::Json;

Json plan_json(const PlanFlags& flags, const Planned& planned) {
  const plan::PlanInput& input = planned.input;
  const plan::CapacityPlan& plan = planned.plan;
  Json json = {{"model", input.shape.name}, {"family", input.shape.family}, {"requests", input.requests},
               {"length", input.length}, {"kv_cache_dtype", flags.kv_cache_dtype}, {"block_tokens", input.kv.block_tokens},
               {"weights_bytes", plan.weights_bytes}, {"kv_bytes", plan.kv_bytes}, {"kv_payload_bytes", plan.kv_payload_bytes},
               {"kv_bytes_per_token", plan.kv_bytes_per_token}, {"state_bytes", plan.state_bytes}, {"total_bytes", plan.total_bytes}};
  json["memory_bytes"] = planned.fit ? Json(flags.memory) : Json(nullptr);
  json["fits"] = planned.fit ? Json(planned.fit->fits) : Json(nullptr);
  json["max_sequences"] = planned.fit ? Json(planned.fit->max_sequences) : Json(nullptr);
  json["longest_length"] = planned.fit ? Json(planned.fit->longest_length) : Json(nullptr);
  json["lines"] = Json::array();
  for (const plan::PlanLine& line : plan.lines) {
    json["lines"].push_back({{"name", line.name}, {"bytes", line.bytes}, {"how", line.how}, {"field", line.field}});
  }
  json["warnings"] = planned.warnings;
  return json;
}

}  // namespace kvasir::cli
