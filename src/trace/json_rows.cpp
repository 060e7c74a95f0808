// The two forms that are JSON lines: our own and Mooncake's.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "trace/row_reader.hpp"

namespace kvasir::trace {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kMooncakeBlockTokens = 512;
constexpr double kSecondsMax = 1e9;  // thirty years: later is a unit mixed up

Result<Json> parse_object(std::string_view line, const Place& place) {
  Json object = Json::parse(line, nullptr, false);
  if (object.is_object()) return object;
  return bad_row(place, "the line is no JSON object");
}

// For messages: long values are cut.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

Result<const Json*> field(const Json& object, const char* key, const Place& place) {
  const auto found = object.find(key);
  if (found == object.end()) return bad_row(place, fmt::format("the key '{}' is missing", key));
  return &*found;
}

Result<std::uint32_t> whole(const Json& object, const char* key, std::uint32_t high, const Place& place) {
  KV_ASSIGN(const Json* value, field(object, key, place));
  if (value->is_number_unsigned()) {
    const auto number = value->get<std::uint64_t>();
    if (number >= 1 && number <= high) return static_cast<std::uint32_t>(number);
  }
  return bad_value(place, key, shown(*value), fmt::format("a whole number from 1 to {}", high));
}

Result<double> seconds(const Json& object, const char* key, double unit, const Place& place) {
  KV_ASSIGN(const Json* value, field(object, key, place));
  if (value->is_number()) {
    const double number = value->get<double>() * unit;
    if (number >= 0 && number <= kSecondsMax) return number;
  }
  return bad_value(place, key, shown(*value), fmt::format("a number from 0 to {:g}", kSecondsMax / unit));
}

Result<std::vector<std::uint64_t>> ids(const Json& value, const char* key, const Place& place) {
  const char* valid = "a list of whole numbers from 0 to 2^64 - 1";
  if (!value.is_array()) return bad_value(place, key, shown(value), valid);
  std::vector<std::uint64_t> list;
  list.reserve(value.size());
  for (const Json& id : value) {
    if (!id.is_number_unsigned()) return bad_value(place, fmt::format("{}[{}]", key, list.size()), shown(id), valid);
    list.push_back(id.get<std::uint64_t>());
  }
  return list;
}

Status check_keys(const Json& object, std::initializer_list<std::string_view> known, std::string_view valid,
                  const Place& place) {
  for (const auto& [key, value] : object.items()) {
    bool found = false;
    for (const std::string_view name : known) found = found || name == key;
    if (!found) return bad_row(place, fmt::format("the key '{}' is not known; valid: {}", key, valid));
  }
  return ok_status();
}

class KvasirRows final : public RowReader {
 public:
  Result<std::optional<TraceRequest>> read(std::string_view line, const Place& place) override {
    KV_ASSIGN(const Json object, parse_object(line, place));
    if (!has_header_) {
      KV_TRY(read_header(object, place));
      return std::optional<TraceRequest>();
    }
    KV_TRY(check_keys(object, {"arrival_s", "input_tokens", "output_tokens", "block_ids"},
                      "arrival_s, input_tokens, output_tokens, block_ids", place));
    TraceRequest request;
    KV_ASSIGN(request.arrival_s, seconds(object, "arrival_s", 1, place));
    KV_ASSIGN(request.input_tokens, whole(object, "input_tokens", kMaxTokens, place));
    KV_ASSIGN(request.output_tokens, whole(object, "output_tokens", kMaxTokens, place));
    if (object.contains("block_ids")) {
      KV_ASSIGN(request.block_ids, ids(object["block_ids"], "block_ids", place));
    }
    return std::optional(std::move(request));
  }

  std::uint32_t block_tokens() const override { return block_tokens_; }

 private:
  Status read_header(const Json& object, const Place& place) {
    if (object.value("format", Json()) != kFormatName) {
      return bad_row(
          place,
          fmt::format("no known trace begins like this; valid: {{\"format\":\"{}\",\"version\":1}}, a Mooncake line "
                      "(timestamp, input_length, output_length, hash_ids) or the Azure header {}",
                      kFormatName, kAzureHeader));
    }
    KV_TRY(check_keys(object, {"format", "version", "block_tokens"}, "format, version, block_tokens", place));
    KV_TRY(whole(object, "version", 1, place));
    if (object.contains("block_tokens")) {
      KV_ASSIGN(block_tokens_, whole(object, "block_tokens", kMaxTokens, place));
    }
    has_header_ = true;
    return ok_status();
  }

  bool has_header_ = false;
  std::uint32_t block_tokens_ = 0;
};

class MooncakeRows final : public RowReader {
 public:
  Result<std::optional<TraceRequest>> read(std::string_view line, const Place& place) override {
    KV_ASSIGN(const Json object, parse_object(line, place));
    TraceRequest request;
    KV_ASSIGN(request.arrival_s, seconds(object, "timestamp", 1e-3, place));
    KV_ASSIGN(request.input_tokens, whole(object, "input_length", kMaxTokens, place));
    KV_ASSIGN(request.output_tokens, whole(object, "output_length", kMaxTokens, place));
    KV_ASSIGN(const Json* hash_ids, field(object, "hash_ids", place));
    KV_ASSIGN(request.block_ids, ids(*hash_ids, "hash_ids", place));
    return std::optional(std::move(request));
  }

  std::uint32_t block_tokens() const override { return kMooncakeBlockTokens; }
};

}  // namespace

std::unique_ptr<RowReader> kvasir_rows() { return std::make_unique<KvasirRows>(); }
std::unique_ptr<RowReader> mooncake_rows() { return std::make_unique<MooncakeRows>(); }

}  // namespace kvasir::trace
