#include "artifact/gguf_value.hpp"

#include <fmt/format.h>

#include <concepts>
#include <limits>

namespace kvasir::artifact {
namespace {

constexpr std::string_view kValidTypes = "valid are 0 to 12";

Result<bool> to_bool(const GgufCursor& cursor, std::uint8_t byte) {
  if (byte > 1) return cursor.bad(fmt::format("a bool is stored as {}; valid are 0 and 1", byte));
  return byte == 1;
}

// Bytes that one element takes at least; 0 for a type that no array may hold.
std::uint64_t smallest_element(GgufValueType type) {
  switch (type) {
    case GgufValueType::uint8:
    case GgufValueType::int8:
    case GgufValueType::boolean: return 1;
    case GgufValueType::uint16:
    case GgufValueType::int16: return 2;
    case GgufValueType::uint32:
    case GgufValueType::int32:
    case GgufValueType::float32: return 4;
    case GgufValueType::uint64:
    case GgufValueType::int64:
    case GgufValueType::float64:
    case GgufValueType::string: return 8;
    case GgufValueType::array: return 0;
  }
  return 0;
}

// The whole array is known to lie within the file, so its bytes are taken at once.
template <class Stored, class Widened>
Result<GgufValue> number_array(GgufCursor& cursor, std::uint64_t count) {
  KV_ASSIGN(const auto bytes, cursor.take(count * sizeof(Stored)));
  std::vector<Widened> values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    if constexpr (std::same_as<Stored, std::uint64_t>) {
      if (stored > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return cursor.bad(fmt::format("array element {} is {}; array elements above 2^63 - 1 are not valid", i, stored));
    }
    values[i] = static_cast<Widened>(stored);
  }
  return GgufValue(GgufArray{std::move(values)});
}

Result<GgufValue> bool_array(GgufCursor& cursor, std::uint64_t count) {
  KV_ASSIGN(const auto bytes, cursor.take(count));
  std::vector<std::int64_t> values;
  values.reserve(count);
  for (const std::byte byte : bytes) {
    KV_ASSIGN(const bool value, to_bool(cursor, std::to_integer<std::uint8_t>(byte)));
    values.push_back(value ? 1 : 0);
  }
  return GgufValue(GgufArray{std::move(values)});
}

Result<GgufValue> string_array(GgufCursor& cursor, std::uint64_t count) {
  std::vector<std::string_view> values;
  values.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    KV_ASSIGN(const auto text, cursor.string());
    values.push_back(text);
  }
  return GgufValue(GgufArray{std::move(values)});
}

Result<GgufValue> read_array(GgufCursor& cursor) {
  KV_ASSIGN(const auto number, cursor.scalar<std::uint32_t>());
  const auto type = static_cast<GgufValueType>(number);
  if (type == GgufValueType::array) return cursor.bad("an array of arrays; valid are arrays of numbers, bools or strings");
  const std::uint64_t smallest = smallest_element(type);
  if (smallest == 0) return cursor.bad(fmt::format("array element type {} is unknown; {} except 9", number, kValidTypes));
  KV_ASSIGN(const auto count, cursor.scalar<std::uint64_t>());
  if (count > kMaxArrayElements)
    return cursor.bad(fmt::format("an array of {} elements; at most {} are valid", count, kMaxArrayElements));
  if (count > cursor.remaining() / smallest)
    return cursor.bad(fmt::format("an array of {} elements of {} bytes or more, but the file has only {} more bytes; it "
                                  "is truncated or its header lies",
                                  count, smallest, cursor.remaining()));
  switch (type) {
    case GgufValueType::uint8: return number_array<std::uint8_t, std::int64_t>(cursor, count);
    case GgufValueType::int8: return number_array<std::int8_t, std::int64_t>(cursor, count);
    case GgufValueType::uint16: return number_array<std::uint16_t, std::int64_t>(cursor, count);
    case GgufValueType::int16: return number_array<std::int16_t, std::int64_t>(cursor, count);
    case GgufValueType::uint32: return number_array<std::uint32_t, std::int64_t>(cursor, count);
    case GgufValueType::int32: return number_array<std::int32_t, std::int64_t>(cursor, count);
    case GgufValueType::uint64: return number_array<std::uint64_t, std::int64_t>(cursor, count);
    case GgufValueType::int64: return number_array<std::int64_t, std::int64_t>(cursor, count);
    case GgufValueType::float32: return number_array<float, double>(cursor, count);
    case GgufValueType::float64: return number_array<double, double>(cursor, count);
    case GgufValueType::boolean: return bool_array(cursor, count);
    case GgufValueType::string: return string_array(cursor, count);
    case GgufValueType::array: break;
  }
  check_failed(__FILE__, __LINE__, "type", "smallest_element knows every type that an array may hold");
}

template <class Stored, class Widened>
Result<GgufValue> number(GgufCursor& cursor) {
  KV_ASSIGN(const auto stored, cursor.scalar<Stored>());
  return GgufValue(static_cast<Widened>(stored));
}

}  // namespace

Result<GgufValue> read_gguf_value(GgufCursor& cursor) {
  KV_ASSIGN(const auto type, cursor.scalar<std::uint32_t>());
  switch (static_cast<GgufValueType>(type)) {
    case GgufValueType::uint8: return number<std::uint8_t, std::uint64_t>(cursor);
    case GgufValueType::int8: return number<std::int8_t, std::int64_t>(cursor);
    case GgufValueType::uint16: return number<std::uint16_t, std::uint64_t>(cursor);
    case GgufValueType::int16: return number<std::int16_t, std::int64_t>(cursor);
    case GgufValueType::uint32: return number<std::uint32_t, std::uint64_t>(cursor);
    case GgufValueType::int32: return number<std::int32_t, std::int64_t>(cursor);
    case GgufValueType::uint64: return number<std::uint64_t, std::uint64_t>(cursor);
    case GgufValueType::int64: return number<std::int64_t, std::int64_t>(cursor);
    case GgufValueType::float32: return number<float, double>(cursor);
    case GgufValueType::float64: return number<double, double>(cursor);
    case GgufValueType::boolean: {
      KV_ASSIGN(const auto byte, cursor.scalar<std::uint8_t>());
      KV_ASSIGN(const bool value, to_bool(cursor, byte));
      return GgufValue(value);
    }
    case GgufValueType::string: {
      KV_ASSIGN(const auto text, cursor.string());
      return GgufValue(text);
    }
    case GgufValueType::array: return read_array(cursor);
  }
  return cursor.bad(fmt::format("value type {} is unknown; {}", type, kValidTypes));
}

}  // namespace kvasir::artifact
