#include "cli/effective.hpp"

#include "base/units.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

std::uint64_t total_of(std::span<const engine::MemoryLine> lines) {
  std::uint64_t total = 0;
  for (const engine::MemoryLine& line : lines) total += line.real;
  return total;
}

}  // namespace

report::Json effective_json(const engine::EffectiveSettings& settings) {
  report::Json json;
  json["isa"] = std::string(platform::to_string(settings.isa));
  json["compute"] = settings.compute == model::Compute::f32 ? "f32" : "int8";
  json["threads"] = settings.threads;
  json["block_tokens"] = settings.block_tokens;
  json["max_num_batched_tokens"] = settings.max_num_batched_tokens;
  json["max_num_seqs"] = settings.max_num_seqs;
  json["max_model_len"] = settings.max_model_len;
  json["kv_cache_bytes"] = settings.kv_cache_bytes;
  json["kv_cache_dtype"] = settings.kv_cache_dtype;
  json["steps"] = settings.steps;
  return json;
}

report::Json memory_json(std::span<const engine::MemoryLine> lines, std::uint64_t runtime_bytes, std::uint64_t resident_bytes) {
  report::Json json;
  json["lines"] = report::Json::array();
  for (const engine::MemoryLine& line : lines) {
    json["lines"].push_back({{"name", line.name}, {"computed_bytes", line.computed}, {"real_bytes", line.real}, {"how", line.how}});
  }
  json["total_bytes"] = total_of(lines);
  json["runtime_bytes"] = runtime_bytes;
  json["resident_bytes"] = resident_bytes;
  return json;
}

std::string memory_table(std::span<const engine::MemoryLine> lines, std::uint64_t runtime_bytes, std::uint64_t resident_bytes) {
  report::Table table({{"memory", report::Align::left}, {"computed", report::Align::right}, {"real", report::Align::right},
                       {"how", report::Align::left}});
  for (const engine::MemoryLine& line : lines) table.add_row({line.name, format_bytes(line.computed), format_bytes(line.real), line.how});
  table.add_rule();
  table.add_row({"total", "", format_bytes(total_of(lines)), ""});
  table.add_row({"runtime", "", format_bytes(runtime_bytes), "measured: program, libraries, tokenizer"});
  table.add_row({"resident", "", format_bytes(resident_bytes), "measured: all of the process, cache pages as they fill"});
  return table.render();
}

}  // namespace kvasir::cli
