// Reads request traces. Four forms:
//   kvasir    JSON lines. First {"format":"kvasir-trace","version":1}, with "block_tokens" if requests have block ids;
//             then a request a line: {"arrival_s":0.25,"input_tokens":120,"output_tokens":30,"block_ids":[7,9]}.
//             "block_ids" may be left out; a key that is not named here is an error.
//   mooncake  JSON lines of the Mooncake traces: timestamp (ms), input_length, output_length, hash_ids (512 tokens
//   each). azure     CSV of the Azure LLM inference traces: TIMESTAMP (wall clock), ContextTokens, GeneratedTokens; the
//             first request's time becomes 0.
//   vidur     CSV of lengths without arrivals: num_prefill_tokens, num_decode_tokens, num_total_tokens, pd_ratio (which
//             is not read).
// Lines may end in LF or CRLF; empty lines are skipped.
// Thread rule: pure but for the stream; any thread.
// Errors: bad_input, naming the file, the line, the key, its value and what would be valid; io for a file that cannot
// be read. Source: Qin et al., Mooncake, FAST 2025, and its trace release; Patel et al., Splitwise, ISCA 2024, and
// AzurePublicDataset; Agrawal et al., Vidur, MLSys 2024, and its processed traces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "trace/trace.hpp"

namespace kvasir::trace {

enum class TraceFormat { automatic, kvasir, mooncake, azure, vidur };  // automatic: by the first line

// "auto", "kvasir", "mooncake", "azure", "vidur".
Result<TraceFormat> parse_format(std::string_view name);

struct ReadOptions {
  TraceFormat format = TraceFormat::automatic;
  std::size_t limit = std::numeric_limits<std::size_t>::max();  // requests to read; what follows is not looked at
};

inline constexpr std::uint64_t kMaxTraceBytes = std::uint64_t{1} << 30;   // of a file

// name: what the messages call the stream. An empty trace is an error.
Result<Trace> read_trace(std::istream& in, std::string_view name, const ReadOptions& options = {});
Result<Trace> read_trace_file(const std::string& path, const ReadOptions& options = {});

// The kvasir form; read_trace gives the same trace back. REQUIRES: trace.timed.
void write_trace(std::ostream& out, const Trace& trace);

}  // namespace kvasir::trace
