// Every field of every request that this server knows by name: the one table from which validation, the texts of errors
// and the compatibility page (docs/api.md) come.
//
// A field inside another is a row of its own: "stream_options.include_usage", "messages[].role".
//
// Thread rule: constant data; any thread.
// Invariants: a (name, route) pair has at most one row.
// Source: the OpenAI API description; vLLM's and llama.cpp's request types.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace kvasir::server::api {

// What a body is for. The render routes take the bodies of chat and completions.
enum class Route : std::uint8_t { chat = 1, completions = 2, tokenize = 4, detokenize = 8 };
using Routes = std::uint8_t;  // a set of Route
constexpr Routes operator|(Route a, Route b) {
  return static_cast<Routes>(static_cast<Routes>(a) | static_cast<Routes>(b));
}
constexpr Routes operator|(Routes a, Route b) { return static_cast<Routes>(a | static_cast<Routes>(b)); }
constexpr bool contains(Routes routes, Route route) { return (routes & static_cast<Routes>(route)) != 0; }

enum class FieldType : std::uint8_t {
  boolean,
  flag_or_word,  // true, false or one of the words
  integer,
  number,
  text,
  texts,  // one text or a list of them
  text_list,
  token_list,
  bias_map,  // {"token id": number}
  object,
  objects,  // a list of objects
  content,  // text, or a list of parts
  prompt,   // text, a list of texts, a list of token ids, or a list of lists of token ids
  any,
};

enum class FieldStatus : std::uint8_t {
  supported,
  ignored,  // accepted, checked for its type, and without effect
  loose,    // would change the answer elsewhere and does not here: accepted with a warning, refused in strict mode
  refused,  // 400 by name, unless the value asks for nothing (`neutral`)
};

// Numbers: the smallest and largest; texts: bytes, of each; lists: entries.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is out
};

struct FieldSpec {
  std::string_view name;
  Routes routes = 0;
  FieldType type = FieldType::any;
  FieldStatus status = FieldStatus::supported;
  Range range;
  std::string_view words;  // of a text or flag: the only ones allowed, "a|b|c"; of a refused field: its neutral value, as JSON
  std::string_view standard;  // the default; "" = absent means nothing
  std::string_view does;      // one line
};

inline constexpr std::size_t kMaxPrompts = 2048;  // of one completions request
inline constexpr std::size_t kMaxMessages = 16384;
inline constexpr std::uint32_t kMaxChoices = 128;     // n
inline constexpr std::uint32_t kMaxSequences = 4096;  // prompts x n
inline constexpr std::size_t kMaxBiases = 1024;
inline constexpr std::size_t kMaxStopTokens = 256;
inline constexpr std::size_t kMaxBadWords = 256;
inline constexpr std::size_t kMaxListedTokens = std::size_t{1} << 20;

std::span<const FieldSpec> fields();
// Null: no such field.
const FieldSpec* find_field(std::string_view name, Route route);
// Whether rows of members of this field exist ("stream_options.", "messages[]."): its objects are checked inside.
bool has_members(std::string_view name, Route route);

// What a message or the page says: "a whole number", "0 to 2", "one of: a, b".
std::string_view to_string(FieldType type);
std::string_view to_string(FieldStatus status);
// "above 0, up to 1", "1 to 64 bytes", "at most 16 entries", "one of: in_memory, 24h"; "" = no bounds.
std::string range_words(const FieldSpec& field);
// Type and range in one: what is valid.
std::string valid_words(const FieldSpec& field);

}  // namespace kvasir::server::api
