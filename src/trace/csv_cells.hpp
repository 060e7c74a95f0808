// Cells of CSV lines without quotes. Internal to trace.
// Thread rule: pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "trace/row_reader.hpp"

namespace kvasir::trace {

// The cells of a line, which are as many as those of its header. They view the line.
Result<std::vector<std::string_view>> split_cells(std::string_view line, std::string_view header, const Place& place);

// "42": a whole number from 1 to kMaxTokens.
Result<std::uint32_t> parse_tokens(std::string_view text, std::string_view key, const Place& place);

}  // namespace kvasir::trace
