#include "artifact/record_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvasir::artifact {
namespace {

// Every key that the two do not give the same value.
void compare(const TextMap& one, const TextMap& other, DifferenceKind kind, std::vector<RecordDifference>& out) {
  const auto value = [](const TextMap& map, const std::string& key) -> std::optional<std::string> {
    const auto at = map.find(key);
    return at == map.end() ? std::nullopt : std::optional(at->second);
  };
  TextMap all = one;
  all.insert(other.begin(), other.end());
  for (const auto& [key, ignored] : all) {
    RecordDifference difference{kind, key, value(one, key), value(other, key)};
    if (difference.one != difference.other) out.push_back(std::move(difference));
  }
}

// An id's parts, undetermined ones as what they lack.
TextMap known(const RecordedId& id) {
  TextMap out = id.parts.parts();
  for (const auto& [key, why] : id.undetermined) out.emplace(key, fmt::format("undetermined ({})", why));
  return out;
}

// What no id has.
TextMap rest(const ArtifactRecord& record) {
  TextMap out{{"model.name", record.model_name}, {"model.architecture", record.architecture}, {"engine_revision", record.engine_revision}};
  for (const auto& [key, value] : record.settings) out.emplace("settings." + key, value);
  for (const CapacityLine& line : record.capacity) {
    std::string key = "capacity." + line.name;
    for (int nth = 2; out.contains(key); ++nth)   // lines may share a name: two kinds of windows
      key = fmt::format("capacity.{}#{}", line.name, nth);
    out.emplace(std::move(key), fmt::format("{} B", line.bytes));
  }
  return out;
}

std::string why_of(const ArtifactRecord& one, const ArtifactRecord& other) {
  const struct { const char* name; const RecordedId &one, &other; const char* unequal; } ids[] = {
      {"numeric", one.numeric, other.numeric, "the numeric ids differ: the same tokens leave other bits"},
      {"layout", one.layout, other.layout, "the layout ids differ: the same bits lie elsewhere, and blocks cannot be taken as they are"}};
  for (const auto& id : ids) {
    for (const RecordedId* side : {&id.one, &id.other}) {
      if (side->undetermined.empty()) continue;
      const auto& [part, why] = *side->undetermined.begin();
      return fmt::format("the {} id of {} is not determined: {}: {}", id.name, side == &id.one ? "the first" : "the second", part, why);
    }
    if (id.one.id() != id.other.id()) return id.unequal;
  }
  return "";
}

}  // namespace

std::string_view to_string(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::bits: return "bits";
    case DifferenceKind::bytes: return "bytes";
    case DifferenceKind::neither: return "neither";
  }
  return "?";
}

RecordDiff diff_records(const ArtifactRecord& one, const ArtifactRecord& other) {
  RecordDiff out;
  compare(known(one.numeric), known(other.numeric), DifferenceKind::bits, out.differences);
  compare(known(one.layout), known(other.layout), DifferenceKind::bytes, out.differences);
  compare(rest(one), rest(other), DifferenceKind::neither, out.differences);
  out.why = why_of(one, other);
  out.portable = out.why.empty();
  if (out.portable) out.why = "numeric and layout id are equal";
  return out;
}

}  // namespace kvasir::artifact
