// Artifact records and what differs between two, for people and for programs.
// Thread rule: pure functions; any thread.
#pragma once

#include <string>

#include "artifact/record.hpp"
#include "artifact/record_diff.hpp"
#include "report/json.hpp"

namespace kvasir::cli {

// Ids first, then each part, setting and line.
std::string record_table(const artifact::ArtifactRecord& record);

// A table of differences in three classes, then the verdict.
std::string diff_table(const artifact::RecordDiff& diff);
// {"portable", "why", "differences": [{"changes": "bits"|"bytes"|"neither", "key", "one", "other"}]}
report::Json diff_json(const artifact::RecordDiff& diff);

}  // namespace kvasir::cli
