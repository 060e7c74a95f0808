#include "cli/record_text.hpp"

#include <fmt/format.h>

#include "base/units.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

constexpr std::size_t kShownValue = 72;

std::string shown(const std::string& text) { return report::printable(report::shorten(text, kShownValue)); }

void add_id(report::Table& table, const char* name, const artifact::RecordedId& id) {
  const auto digest = id.id();
  table.add_row({fmt::format("{} id", name), digest ? to_hex(*digest) : "not determined"});
  for (const auto& [part, value] : id.parts.parts()) table.add_row({"  " + shown(part), shown(value)});
  for (const auto& [part, why] : id.undetermined) table.add_row({"  " + shown(part), "not determined: " + shown(why)});
}

std::string side(const std::optional<std::string>& value) { return value ? shown(*value) : "-"; }

}  // namespace

std::string record_table(const artifact::ArtifactRecord& record) {
  report::Table table({{"record", report::Align::left}, {shown(record.model_name), report::Align::left}});
  table.add_row({"architecture", shown(record.architecture)});
  table.add_row({"engine revision", shown(record.engine_revision)});
  add_id(table, "numeric", record.numeric);
  add_id(table, "layout", record.layout);
  table.add_rule();
  for (const auto& [key, value] : record.settings) table.add_row({shown(key), shown(value)});
  table.add_rule();
  std::uint64_t total = 0;
  for (const artifact::CapacityLine& line : record.capacity) {
    table.add_row({shown(line.name), format_bytes(line.bytes)});
    total += line.bytes;   // the reader checked the sum
  }
  table.add_row({"total", format_bytes(total)});
  return table.render();
}

std::string diff_table(const artifact::RecordDiff& diff) {
  std::string text;
  if (!diff.differences.empty()) {
    report::Table table({{"changes", report::Align::left}, {"what", report::Align::left}, {"first", report::Align::left}, {"second", report::Align::left}});
    for (const artifact::RecordDifference& one : diff.differences) table.add_row({std::string(artifact::to_string(one.kind)), shown(one.key), side(one.one), side(one.other)});
    text = table.render() + '\n';
  }
  return text + fmt::format("KV is {}portable between them: {}.\n", diff.portable ? "" : "not ", report::printable(diff.why));
}

report::Json diff_json(const artifact::RecordDiff& diff) {
  const auto value = [](const std::optional<std::string>& text) { return text ? report::Json(*text) : report::Json(nullptr); };
  report::Json list = report::Json::array();
  for (const artifact::RecordDifference& one : diff.differences)
    list.push_back({{"changes", artifact::to_string(one.kind)}, {"key", one.key}, {"one", value(one.one)}, {"other", value(one.other)}});
  return {{"portable", diff.portable}, {"why", diff.why}, {"differences", std::move(list)}};
}

}  // namespace kvasir::cli
