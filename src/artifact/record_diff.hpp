// What differs between two artifact records, and whether KV of one is KV of the other.
// Thread rule: pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/record.hpp"

namespace kvasir::artifact {

enum class DifferenceKind : std::uint8_t {
  bits,     // a part of the numeric id: other logits, KV is worthless
  bytes,    // a part of the layout id: the same values lie elsewhere
  neither,  // names, revision of the program, settings, memory
};
std::string_view to_string(DifferenceKind kind);

struct RecordDifference {
  DifferenceKind kind = DifferenceKind::neither;
  std::string key;                       // "kv.k.type", "settings.threads", "capacity.kv.full"
  std::optional<std::string> one, other; // none: only the other record has it
};

struct RecordDiff {
  std::vector<RecordDifference> differences;   // by kind, then by key
  bool portable = false;                       // both ids of both records are determined, and equal
  std::string why;                             // in words
};

RecordDiff diff_records(const ArtifactRecord& one, const ArtifactRecord& other);

}  // namespace kvasir::artifact
