// The text of a config.json as a JSON value, bounded: what a hostile file can make the reader allocate or nest is limited
// before it happens.
// Thread rule: a pure function; any thread.
// Errors: bad_input naming the file, the place and the limit: over kMaxConfigBytes, kMaxDepth or kMaxValues, not JSON, not an
// object, a member given twice.
// Source: nlohmann/json's SAX interface, which does not recurse.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.hpp"

namespace kvasir::artifact {

inline constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxConfigDepth = 32;            // objects and lists within each other
inline constexpr std::size_t kMaxConfigValues = 1u << 18;     // real ones have hundreds

Result<nlohmann::json> parse_config(std::string_view text, std::string_view source_name);

}  // namespace kvasir::artifact
