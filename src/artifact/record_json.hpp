// The artifact record as a file: one JSON object, keys in byte order, described in docs/record.md.
// Thread rule: pure functions; any thread.
// Errors: bad_input naming the source, the key and what would be valid: not JSON, beyond kMaxRecordBytes, another version,
// a key that is missing or unknown, an id that does not follow from its parts, a total that is not the sum of the lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "artifact/record.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// A reader takes this version alone: a new key or a new meaning is a new number.
inline constexpr std::uint64_t kRecordVersion = 1;
inline constexpr std::size_t kMaxRecordBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxCapacityLines = 1024;

// Ends with a newline. Bytes of a model's name that are no UTF-8 become U+FFFD. Errors: bad_input if it would be longer than
// a reader takes.
Result<std::string> record_text(const ArtifactRecord& record);

// `source_name` opens messages.
Result<ArtifactRecord> parse_record(std::string_view text, std::string_view source_name);

}  // namespace kvasir::artifact
