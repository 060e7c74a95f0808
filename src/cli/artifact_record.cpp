#include "cli/artifact_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "artifact/record_json.hpp"
#include "cli/loading.hpp"
#include "plan/planned_model.hpp"
#include "engine/record.hpp"
#include "model/footprint.hpp"
#include "report/progress.hpp"

namespace kvasir::cli {
namespace {

using artifact::ArtifactRecord;

Result<engine::ModelHashes> hashes_of(const artifact::GgufFile& file, const HashProgress& go_on) {
  const std::optional<Sha256Digest> weights = artifact::content_hash(file, go_on);
  if (!weights) return Error{ErrorCode::cancelled, "asked to end while the model file was hashed"};
  return engine::ModelHashes{*weights, artifact::tokenizer_hash(file)};
}

// Why no engine of ours would run this; empty if one does.
std::string why_not_run(const plan::PlanInput& input, const plan::KvGroups& kv) {
  if (!model::has_forward_pass(input.shape.family))
    return fmt::format("no engine here runs '{}'", input.shape.family);
  for (const format::KvType type : {input.kv.format.k, input.kv.format.v}) {
    if (!format::is_offered(type)) return fmt::format("a cache of {} can be planned, not stored", format::to_string(type));
  }
  const auto differs = [&input](const plan::PlannedGroup& group) { return group.group.format != input.kv.format; };
  if (std::any_of(kv.groups.begin(), kv.groups.end(), differs)) return "layers of another format can be planned, not stored";
  const bool plain = kv.state_bytes == 0 && std::all_of(kv.groups.begin(), kv.groups.end(), [](const plan::PlannedGroup& group) {
    const bool rows = group.kind == plan::GroupKind::full || group.kind == plan::GroupKind::window || group.kind == plan::GroupKind::chunk;
    return rows && group.merged == 1;
  });
  return plain ? "" : "no engine here keeps anything but full history, windows and chunks";
}

artifact::TextMap settings_of(std::uint64_t sequences, std::uint64_t step_tokens, std::uint64_t length, std::uint64_t threads) {
  return {{"max_num_seqs", fmt::format("{}", sequences)}, {"max_num_batched_tokens", fmt::format("{}", step_tokens)},
          {"max_model_len", fmt::format("{}", length)}, {"threads", fmt::format("{}", threads)}};
}

}  // namespace

Result<ArtifactRecord> planned_record(const PlanFlags& flags, const Planned& planned, const HashProgress& go_on) {
  const plan::PlanInput& input = planned.input;
  if (!flags.set.empty())
    return Error{ErrorCode::usage, fmt::format("--record: with --set {} no model is like the one planned; valid: --record without --set", flags.set[0])};
  if (planned.device.parallel)
    return Error{ErrorCode::usage, "--record: a layout over several devices can be planned, not launched; valid: --record of one device"};
  ArtifactRecord out;
  out.model_name = input.shape.name;
  out.architecture = input.shape.family;
  out.engine_revision = KVASIR_VERSION;
  const std::string not_run = why_not_run(input, planned.plan.kv);
  const std::optional<model::Compute> compute = not_run.empty() ? std::optional(parse_compute(flags.record.compute)) : std::nullopt;
  if (plan::is_weights_file(flags.model)) {
    KV_ASSIGN(const artifact::GgufFile file, open_model_file(flags.model));
    KV_ASSIGN(const engine::ModelHashes hashes, hashes_of(file, go_on));
    const Result<artifact::ModelGeometry> geometry = artifact::ModelGeometry::from_gguf(file);
    const std::optional<artifact::Rope> rope = geometry.ok() ? std::optional(geometry->rope) : std::nullopt;
    out.numeric = engine::numeric_id(hashes, rope, input.kv.format, compute, not_run);
  } else {
    const std::string why = "there are no weights to hash: the model is known by its config or name alone";
    out.numeric = engine::numeric_id(std::nullopt, std::nullopt, input.kv.format, std::nullopt, why);
  }
  KV_ASSIGN(out.layout, engine::layout_id(planned.plan.kv.geometry()));
  if (!not_run.empty()) out.layout.undetermined.emplace("engine", not_run);
  out.settings = settings_of(input.requests, std::max<std::uint64_t>(input.batched_tokens, input.requests), input.length, input.threads);
  for (const plan::PlanLine& line : planned.plan.lines) out.capacity.push_back({line.name, line.bytes});
  return out;
}

Result<ArtifactRecord> launched_record(const artifact::GgufFile& file, const model::Model& model,
                                       const engine::PoolConfig& config, const HashProgress& go_on) {
  const artifact::ModelGeometry& geometry = model.geometry();
  const format::KvGeometry kv = geometry.kv_geometry(config.kv_format, config.block_tokens);
  KV_ASSIGN(const engine::EngineFootprint footprint, engine::engine_footprint(geometry, kv, config));
  ArtifactRecord out;
  out.model_name = geometry.name;
  out.architecture = geometry.architecture;
  out.engine_revision = KVASIR_VERSION;
  KV_ASSIGN(const engine::ModelHashes hashes, hashes_of(file, go_on));
  out.numeric = engine::numeric_id(hashes, geometry.rope, config.kv_format, model.options().compute);
  KV_ASSIGN(out.layout, engine::layout_id(kv));
  const engine::PoolConfig& pool = footprint.config;
  out.settings = settings_of(pool.max_sequences, pool.max_batched_tokens, pool.max_model_len, pool.threads);
  out.settings.emplace("isa", platform::to_string(model.options().isa));
  out.capacity = engine::capacity_lines(footprint, model.footprint());
  return out;
}

HashProgress show_hashing(Console& console, std::uint64_t file_bytes) {
  const auto line = std::make_shared<report::ProgressLine>(console.err, console.err_is_terminal, "hashing the model", "MiB");
  const auto begin = std::chrono::steady_clock::now();
  return [line, begin, file_bytes](std::uint64_t done) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    line->update(done >> 20, file_bytes >> 20, seconds);
    if (done == file_bytes) line->clear();
    return true;
  };
}

Status check_record_target(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    if (!std::filesystem::is_regular_file(path, ignored))   // reading a pipe would wait for ever
      return Error{ErrorCode::usage, fmt::format("--record: '{}' is no regular file; valid: a new file, or a record to replace", path)};
    if (const Result<ArtifactRecord> there = read_record(path); !there.ok())
      return Error{ErrorCode::usage, fmt::format("--record: '{}' exists and is no artifact record; valid: a new file, or a record to replace", path)};
  }
  return ok_status();
}

Status write_record(const std::string& path, const std::string& text) {
  KV_TRY(check_record_target(path));
  std::error_code ignored;
  // Beside it, then renamed: who reads never sees half a record.
  const std::string beside = fmt::format("{}.{:08x}.new", path, std::random_device{}());   // another process may write the same record
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  std::error_code failure;
  if (file) std::filesystem::rename(beside, path, failure);
  if (file && !failure) return ok_status();
  std::filesystem::remove(beside, ignored);
  return Error{ErrorCode::io, fmt::format("--record: '{}' cannot be written{}", path, failure ? ": " + failure.message() : "")};
}

Result<ArtifactRecord> read_record(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    return Error{ErrorCode::bad_input, fmt::format("{}: is no regular file, so no artifact record", path)};
  if (const auto bytes = std::filesystem::file_size(path, ignored); !ignored && bytes > artifact::kMaxRecordBytes)
    return Error{ErrorCode::bad_input, fmt::format("{}: has {} bytes; a record has at most {}", path, bytes, artifact::kMaxRecordBytes)};
  KV_ASSIGN(const std::string text, read_text_file(path));
  return artifact::parse_record(text, path);
}

}  // namespace kvasir::cli
