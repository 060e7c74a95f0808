// Artifact records of what is planned and of what is launched: for the same model and options their ids are equal.
// Thread rule: one thread at a time, but for launched_record, which any thread may call.
#pragma once

#include <functional>
#include <string>

#include "artifact/record.hpp"
#include "base/result.hpp"
#include "cli/console.hpp"
#include "cli/plan_answer.hpp"
#include "cli/plan_flags.hpp"
#include "engine/pool_config.hpp"
#include "model/model.hpp"

namespace kvasir::cli {

// Hears the bytes hashed so far; false ends the work (cancelled).
using HashProgress = std::function<bool(std::uint64_t done)>;

// Errors: usage for a shape that --set changed: no such file exists; those of the file.
Result<artifact::ArtifactRecord> planned_record(const PlanFlags& flags, const Planned& planned, const HashProgress& go_on);

// `file` is what `model` was loaded from. Errors: cancelled; those of engine_footprint.
Result<artifact::ArtifactRecord> launched_record(const artifact::GgufFile& file, const model::Model& model,
                                                 const engine::PoolConfig& config, const HashProgress& go_on);

// A progress line on the console's err while a file of so many bytes is hashed, where it is a terminal.
HashProgress show_hashing(Console& console, std::uint64_t file_bytes);

// Whether write_record may write there. Errors: usage for a file that is no record.
Status check_record_target(const std::string& path);
// Replaces a record, or makes a new file: what stands there and is no record stays (usage). Errors: io.
Status write_record(const std::string& path, const std::string& text);

// A record from a file. Errors: bad_input, as parse_record; of a file that is missing.
Result<artifact::ArtifactRecord> read_record(const std::string& path);

}  // namespace kvasir::cli
