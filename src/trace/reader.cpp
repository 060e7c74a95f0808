#include "trace/reader.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "trace/row_reader.hpp"

namespace kvasir::trace {
namespace {

std::unique_ptr<RowReader> rows_of(TraceFormat format, std::string_view first_line) {
  switch (format) {
    case TraceFormat::kvasir:
      return kvasir_rows();
    case TraceFormat::mooncake:
      return mooncake_rows();
    case TraceFormat::azure:
      return azure_rows();
    case TraceFormat::vidur:
      return vidur_rows();
    case TraceFormat::automatic:
      break;
  }
  if (first_line.starts_with("TIMESTAMP")) return azure_rows();
  if (first_line.starts_with("num_prefill_tokens")) return vidur_rows();
  if (first_line.find("\"hash_ids\"") != std::string_view::npos) return mooncake_rows();
  return kvasir_rows();  // whose message says what a trace looks like
}

// What no single row can break.
Status check_row(const TraceRequest& request, const Trace& trace, const Place& place) {
  if (!trace.requests.empty() && request.arrival_s < trace.requests.back().arrival_s) {
    return bad_row(place,
                   fmt::format("the request arrives at {} s, before the one above it at {} s; valid: arrivals in order",
                               request.arrival_s, trace.requests.back().arrival_s));
  }
  if (request.block_ids.empty()) return ok_status();
  if (trace.block_tokens == 0) {
    return bad_row(place,
                   "the request has block ids, but the first line has no 'block_tokens' that says what they stand for");
  }
  const std::uint64_t blocks = ceil_div(request.input_tokens, trace.block_tokens);
  if (request.block_ids.size() != blocks) {
    return bad_row(place, fmt::format("{} block ids for {} input tokens; valid: {}, one for each {} tokens",
                                      request.block_ids.size(), request.input_tokens, blocks, trace.block_tokens));
  }
  return ok_status();
}

}  // namespace

Error bad_value(const Place& place, std::string_view key, std::string_view value, std::string_view valid) {
  return {ErrorCode::bad_input, fmt::format("{}:{}: '{}' is {}; valid: {}", place.name, place.line, key, value, valid)};
}

Error bad_row(const Place& place, std::string_view message) {
  return {ErrorCode::bad_input, fmt::format("{}:{}: {}", place.name, place.line, message)};
}

Result<TraceFormat> parse_format(std::string_view name) {
  if (name == "auto") return TraceFormat::automatic;
  if (name == "kvasir") return TraceFormat::kvasir;
  if (name == "mooncake") return TraceFormat::mooncake;
  if (name == "azure") return TraceFormat::azure;
  if (name == "vidur") return TraceFormat::vidur;
  return Error{ErrorCode::bad_input,
               fmt::format("'{}' is no trace format; valid: auto, kvasir, mooncake, azure, vidur", name)};
}

Result<Trace> read_trace(std::istream& in, std::string_view name, const ReadOptions& options) {
  Trace trace;
  std::unique_ptr<RowReader> rows;
  std::string line;
  for (Place place{name, 1}; trace.requests.size() < options.limit && std::getline(in, line); ++place.line) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (rows == nullptr) rows = rows_of(options.format, line);
    KV_ASSIGN(std::optional<TraceRequest> request, rows->read(line, place));
    trace.block_tokens = rows->block_tokens();
    trace.timed = rows->timed();
    if (!request) continue;
    KV_TRY(check_row(*request, trace, place));
    trace.requests.push_back(std::move(*request));
  }
  if (in.bad()) return Error{ErrorCode::io, fmt::format("cannot read '{}'", name)};
  if (trace.requests.empty()) return Error{ErrorCode::bad_input, fmt::format("'{}' holds no requests", name)};
  return trace;
}

Result<Trace> read_trace_file(const std::string& path, const ReadOptions& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{ErrorCode::bad_input, fmt::format("the trace '{}' is a directory", path)};
  }
  if (!std::filesystem::exists(path, ignored))
    return Error{ErrorCode::bad_input, fmt::format("the trace '{}' does not exist", path)};
  if (!std::filesystem::is_regular_file(path, ignored))   // a pipe may never end
    return Error{ErrorCode::bad_input, fmt::format("the trace '{}' is a device, pipe or socket; a regular file is needed", path)};
  if (const std::uintmax_t bytes = std::filesystem::file_size(path, ignored); !ignored && bytes > kMaxTraceBytes)
    return Error{ErrorCode::bad_input, fmt::format("the trace '{}' has {} bytes; valid: at most {}", path, bytes, kMaxTraceBytes)};
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::io, fmt::format("cannot read the trace '{}': {}", path, std::strerror(errno))};
  return read_trace(file, path, options);
}

void write_trace(std::ostream& out, const Trace& trace) {
  KV_CHECK(trace.timed, "the kvasir form says when requests arrive");
  nlohmann::ordered_json head = {{"format", kFormatName}, {"version", 1}};
  if (trace.block_tokens > 0) head["block_tokens"] = trace.block_tokens;
  out << head.dump() << '\n';
  for (const TraceRequest& request : trace.requests) {
    nlohmann::ordered_json row = {{"arrival_s", request.arrival_s},
                                  {"input_tokens", request.input_tokens},
                                  {"output_tokens", request.output_tokens}};
    if (!request.block_ids.empty()) row["block_ids"] = request.block_ids;
    out << row.dump() << '\n';
  }
}

}  // namespace kvasir::trace
