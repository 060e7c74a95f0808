// The ids of an engine: which parts decide the bits of its logits, and which the place of its bytes. A launched engine and a
// plan for one ask the same functions, so their ids are equal.
// Thread rule: pure; any thread.
#pragma once

#include <optional>
#include <vector>

#include "artifact/geometry.hpp"
#include "artifact/record.hpp"
#include "engine/footprint.hpp"
#include "format/block_layout.hpp"
#include "model/footprint.hpp"
#include "model/model.hpp"

namespace kvasir::engine {

struct ModelHashes {
  Sha256Digest weights, tokenizer;   // artifact::content_hash, artifact::tokenizer_hash of the file
};

// Weights, tokenizer, position encoding, formats of K and V with scale granularity and commit group, arithmetic. Neither
// machine nor threads, block size, batch or lengths. What is absent is undetermined for the reason `why`: hashes where there
// is no file, rope and arithmetic where no engine runs the model.
artifact::RecordedId numeric_id(const std::optional<ModelHashes>& hashes, const std::optional<artifact::Rope>& rope,
                                format::KvFormat format, std::optional<model::Compute> compute, std::string_view why = "");

// Block size, tiles, what each cache group holds, and the parallel layout: one device.
// Errors: of BlockLayout::create.
Result<artifact::RecordedId> layout_id(const format::KvGeometry& kv);

// What an engine takes, line by line, under the names of a plan's lines.
std::vector<artifact::CapacityLine> capacity_lines(const EngineFootprint& engine, const model::WeightFootprint& weights);

}  // namespace kvasir::engine
