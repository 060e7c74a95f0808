#include "cli/plan_answer.hpp"

namespace kvasir::cli {

using report::Json;

namespace {

// A row: the choice on each axis by the axis's name, and its numbers.
void add_what_if(const WhatIfTable& table, Json& rows) {
  for (const plan::Alternative& one : table.rows) {
    Json row = Json::object();
    for (std::size_t i = 0; i < table.axes.size(); ++i) row[std::string(to_string(table.axes[i]))] = one.choices[i];
    row["kv_bytes_per_token"] = one.kv_bytes_per_token;
    row["kv_bytes"] = one.kv_bytes;
    row["state_bytes"] = one.state_bytes;
    row["total_bytes"] = one.total_bytes;
    row["max_sequences"] = one.max_sequences ? Json(*one.max_sequences) : Json(nullptr);
    rows.push_back(std::move(row));
  }
}

// parts and low_bytes where a line has them.
Json line_json(const plan::PlanLine& line) {
  Json json = {{"name", line.name}, {"bytes", line.bytes}, {"how", line.how}, {"field", line.field}};
  if (line.low_bytes) json["low_bytes"] = *line.low_bytes;
  if (line.parts.empty()) return json;
  json["parts"] = Json::object();
  for (const plan::PlanPart& part : line.parts) json["parts"][part.name] = part.bytes;
  return json;
}

}  // namespace

Json plan_json(const PlanFlags& flags, const Planned& planned) {
  const plan::PlanInput& input = planned.input;
  const plan::CapacityPlan& plan = planned.plan;
  Json json = {{"model", input.shape.name}, {"family", input.shape.family}, {"requests", input.requests},
               {"length", input.length}, {"kv_cache_dtype", flags.kv_cache_dtype}, {"block_tokens", input.kv.block_tokens},
               {"weights_bytes", plan.weights_bytes}, {"kv_bytes", plan.kv_bytes}, {"kv_payload_bytes", plan.kv_payload_bytes},
               {"kv_bytes_per_token", plan.kv_bytes_per_token}, {"state_bytes", plan.state_bytes}, {"total_bytes", plan.total_bytes}};
  json["memory_bytes"] = planned.fit ? Json(planned.device.memory) : Json(nullptr);
  json["fits"] = planned.fit ? Json(planned.fit->fits) : Json(nullptr);
  json["max_sequences"] = planned.fit ? Json(planned.fit->max_sequences) : Json(nullptr);
  json["longest_length"] = planned.fit && planned.fit->longest_length ? Json(*planned.fit->longest_length) : Json(nullptr);
  json["free_bytes"] = planned.fit && planned.fit->fits ? Json(planned.fit->free) : Json(nullptr);
  json["lines"] = Json::array();
  for (const plan::PlanLine& line : plan.lines) {
    json["lines"].push_back(line_json(line));
  }
  add_device_json(flags.on, planned.device, json);
  add_mix_json(flags.mix, planned.mix, json);
  json["warnings"] = planned.warnings;
  json["what_if"] = Json::array();
  for (const WhatIfTable& table : planned.what_if) add_what_if(table, json["what_if"]);
  json["launch"] = Json::array();
  for (const plan::LaunchCommand& one : planned.launch) json["launch"].push_back({{"engine", one.engine}, {"command", one.command}, {"notes", one.notes}});
  return json;
}

}  // namespace kvasir::cli
