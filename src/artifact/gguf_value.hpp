// Internal to the artifact layer. Reads one metadata value.
// Thread rule: pure but for the cursor; one thread a cursor.
#pragma once

#include <cstdint>

#include "artifact/gguf.hpp"
#include "artifact/gguf_cursor.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// The value types' numbers in a file.
enum class GgufValueType : std::uint32_t {
  uint8 = 0, int8 = 1, uint16 = 2, int16 = 3, uint32 = 4, int32 = 5, float32 = 6, boolean = 7, string = 8, array = 9,
  uint64 = 10, int64 = 11, float64 = 12,
};

// Reads the type number and the value behind it. Errors: bad_input (unknown type, bool not 0 or 1, nested array, more
// than kMaxArrayElements, an array longer than the file, an array element above 2^63 - 1).
Result<GgufValue> read_gguf_value(GgufCursor& cursor);

}  // namespace kvasir::artifact
