// What the reader of each form does with a line. Internal to trace.
// Thread rule: one reader of one stream at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "trace/trace.hpp"

namespace kvasir::trace {

// Where a line is, for messages.
struct Place {
  std::string_view name;
  std::size_t line = 0;  // from 1
};

// "NAME:LINE: KEY is VALUE; valid: ..."
Error bad_value(const Place& place, std::string_view key, std::string_view value, std::string_view valid);
// "NAME:LINE: MESSAGE"
Error bad_row(const Place& place, std::string_view message);

class RowReader {
 public:
  virtual ~RowReader() = default;
  // The request on the line; none for a header.
  virtual Result<std::optional<TraceRequest>> read(std::string_view line, const Place& place) = 0;
  // After the first line.
  virtual std::uint32_t block_tokens() const = 0;
  // Whether rows say when requests arrive.
  virtual bool timed() const { return true; }
};

std::unique_ptr<RowReader> kvasir_rows();
std::unique_ptr<RowReader> mooncake_rows();
std::unique_ptr<RowReader> azure_rows();
std::unique_ptr<RowReader> vidur_rows();

inline constexpr std::string_view kFormatName = "kvasir-trace";
inline constexpr std::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
inline constexpr std::string_view kVidurHeader = "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio";

}  // namespace kvasir::trace
