#include "artifact/record_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "artifact/config_text.hpp"
#include "base/units.hpp"

namespace kvasir::artifact {
namespace {

using Json = nlohmann::json;   // its objects keep byte order

constexpr const char* kVersionKey = "kvasir_record";
constexpr std::size_t kShownBytes = 80;   // of a value in a message

Json id_json(const RecordedId& id) {
  const std::optional<Sha256Digest> digest = id.id();
  return {{"id", digest ? Json(to_hex(*digest)) : Json(nullptr)}, {"parts", id.parts.parts()}, {"undetermined", id.undetermined}};
}

// Reads values by key and says what is wrong with one.
class Reader {
 public:
  Reader(const Json& object, std::string_view source, std::string at) : object_(object), source_(source), at_(std::move(at)) {}

  Error bad(std::string_view key, std::string_view what) const {
    return Error{ErrorCode::bad_input, fmt::format("{}: '{}{}' {}", source_, at_, key, what)};
  }

  // Exactly these keys.
  template <std::size_t N>
  Status require_keys(const std::array<const char*, N>& keys) const {
    for (const char* key : keys) {
      if (!object_.contains(key)) return bad(key, "is missing");
    }
    for (const auto& [key, value] : object_.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        return bad(key.substr(0, kShownBytes), fmt::format("is not a key of version {}; valid: {}", kRecordVersion, fmt::join(keys, ", ")));
    }
    return ok_status();
  }

  Result<std::uint64_t> number(const char* key) const {
    const Json& value = object_.at(key);
    if (!value.is_number_unsigned()) return bad(key, fmt::format("is {}; valid: a whole number below 2^64", shown(value)));
    return value.get<std::uint64_t>();
  }
  Result<std::string> text(const char* key) const {
    const Json& value = object_.at(key);
    if (!value.is_string()) return bad(key, fmt::format("is {}; valid: text", shown(value)));
    return value.get<std::string>();
  }
  Result<Reader> object(const char* key) const {
    const Json& value = object_.at(key);
    if (!value.is_object()) return bad(key, fmt::format("is {}; valid: an object", shown(value)));
    return Reader(value, source_, fmt::format("{}{}.", at_, key));
  }
  // An object of texts.
  Result<TextMap> texts(const char* key) const {
    KV_ASSIGN(const Reader inner, object(key));
    TextMap out;
    for (const auto& [name, value] : inner.object_.items()) {
      if (name.empty()) return bad(key, "has a key without a name; valid: at least one character");
      if (!value.is_string()) return inner.bad(name.substr(0, kShownBytes), fmt::format("is {}; valid: text", shown(value)));
      out.emplace(name, value.get<std::string>());
    }
    return out;
  }
  const Json& value(const char* key) const { return object_.at(key); }
  std::string_view source() const { return source_; }

  static std::string shown(const Json& value) {
    std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() > kShownBytes ? text.substr(0, kShownBytes) + "..." : text;
  }

 private:
  const Json& object_;
  std::string_view source_;
  std::string at_;   // "numeric."
};

Result<RecordedId> read_id(const Reader& record, const char* key) {
  KV_ASSIGN(const Reader reader, record.object(key));
  KV_TRY(reader.require_keys(std::array{"id", "parts", "undetermined"}));
  RecordedId out;
  KV_ASSIGN(const TextMap parts, reader.texts("parts"));
  for (const auto& [name, value] : parts) out.parts.add(name, value);
  KV_ASSIGN(out.undetermined, reader.texts("undetermined"));
  for (const auto& [name, why] : out.undetermined) {
    if (parts.contains(name)) return reader.bad("undetermined", fmt::format("names '{}', which is among the parts too", name.substr(0, kShownBytes)));
  }
  const std::optional<Sha256Digest> derived = out.id();
  const Json expected = derived ? Json(to_hex(*derived)) : Json(nullptr);
  if (reader.value("id") != expected)
    return reader.bad("id", fmt::format("is {}; valid, from its parts: {}", Reader::shown(reader.value("id")), expected.dump()));
  return out;
}

Result<std::vector<CapacityLine>> read_capacity(const Reader& record) {
  const Json& list = record.value("capacity");
  if (!list.is_array()) return record.bad("capacity", fmt::format("is {}; valid: a list", Reader::shown(list)));
  if (list.size() > kMaxCapacityLines)
    return record.bad("capacity", fmt::format("has {} lines; valid: at most {}", list.size(), kMaxCapacityLines));
  std::vector<CapacityLine> lines;
  std::uint64_t sum = 0;
  for (const Json& one : list) {
    if (!one.is_object()) return record.bad("capacity", fmt::format("holds {}; valid: objects of name and bytes", Reader::shown(one)));
    const Reader reader(one, record.source(), fmt::format("capacity[{}].", lines.size()));
    KV_TRY(reader.require_keys(std::array{"bytes", "name"}));
    KV_ASSIGN(std::string name, reader.text("name"));
    if (name.empty()) return reader.bad("name", "is empty; valid: at least one character");
    KV_ASSIGN(const std::uint64_t bytes, reader.number("bytes"));
    const Result<std::uint64_t> added = checked_add(sum, bytes);
    if (!added.ok()) return record.bad("capacity", fmt::format("adds up wrongly: {}", added.error().message));
    sum = *added;
    lines.push_back({std::move(name), bytes});
  }
  KV_ASSIGN(const std::uint64_t total, record.number("total_bytes"));
  if (total != sum) return record.bad("total_bytes", fmt::format("is {}; valid, the sum of its lines: {}", total, sum));
  return lines;
}

}  // namespace

Result<std::string> record_text(const ArtifactRecord& record) {
  Json lines = Json::array();
  std::uint64_t total = 0;
  for (const CapacityLine& line : record.capacity) {
    KV_ASSIGN(total, checked_add(total, line.bytes));
    lines.push_back({{"name", line.name}, {"bytes", line.bytes}});
  }
  const Json json = {{kVersionKey, kRecordVersion}, {"engine_revision", record.engine_revision},
                     {"model", {{"name", record.model_name}, {"architecture", record.architecture}}},
                     {"numeric", id_json(record.numeric)}, {"layout", id_json(record.layout)},
                     {"settings", record.settings}, {"capacity", lines}, {"total_bytes", total}};
  std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  if (text.size() > kMaxRecordBytes)
    return Error{ErrorCode::bad_input, fmt::format("the record would have {} bytes; valid: at most {}", text.size(), kMaxRecordBytes)};
  return text;
}

Result<ArtifactRecord> parse_record(std::string_view text, std::string_view source_name) {
  if (text.size() > kMaxRecordBytes)
    return Error{ErrorCode::bad_input, fmt::format("{}: has {} bytes; a record has at most {}", source_name, text.size(), kMaxRecordBytes)};
  KV_ASSIGN(const Json json, parse_config(text, source_name));
  const Reader reader(json, source_name, "");
  if (!json.contains(kVersionKey)) return reader.bad(kVersionKey, "is missing: this is no artifact record");
  KV_ASSIGN(const std::uint64_t version, reader.number(kVersionKey));
  if (version != kRecordVersion)
    return reader.bad(kVersionKey, fmt::format("is {}; this program reads version {}", version, kRecordVersion));
  KV_TRY(reader.require_keys(std::array{"capacity", "engine_revision", kVersionKey, "layout", "model", "numeric", "settings", "total_bytes"}));
  ArtifactRecord out;
  KV_ASSIGN(const Reader model, reader.object("model"));
  KV_TRY(model.require_keys(std::array{"architecture", "name"}));
  KV_ASSIGN(out.model_name, model.text("name"));
  KV_ASSIGN(out.architecture, model.text("architecture"));
  KV_ASSIGN(out.engine_revision, reader.text("engine_revision"));
  KV_ASSIGN(out.numeric, read_id(reader, "numeric"));
  KV_ASSIGN(out.layout, read_id(reader, "layout"));
  KV_ASSIGN(out.settings, reader.texts("settings"));
  KV_ASSIGN(out.capacity, read_capacity(reader));
  return out;
}

}  // namespace kvasir::artifact
