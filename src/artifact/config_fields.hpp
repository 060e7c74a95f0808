// Typed, bounded access to the fields of a config.json. Every read says which names a field goes by, which values are valid,
// and under which key of ModelShape::said_by the name that was found is noted.
// Thread rule: one thread. The object and the notes must outlive it.
// A field that is null counts as absent. Of several names the first that is there is taken.
// Errors: bad_input as "FILE: field 'NAME' is VALUE; valid are ...": another type, out of range, a wrong length.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace kvasir::artifact {

struct Range {
  std::uint32_t least = 0, most = 0;
};

// Names with a dot reach into nested objects ("attn_config.kv_n_heads").
using FieldNames = std::initializer_list<std::string_view>;

class ConfigFields {
 public:
  using Notes = std::map<std::string, std::string, std::less<>>;

  // `object` is a JSON object; `prefix` opens every name in messages and notes ("text_config.").
  ConfigFields(const nlohmann::json& object, std::string source_name, std::string prefix, Notes& notes)
      : object_(&object), source_(std::move(source_name)), prefix_(std::move(prefix)), notes_(&notes) {}

  // The field of a nested object, or nullopt if it is absent; an error if it is no object.
  Result<std::optional<ConfigFields>> within(std::string_view name) const;

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const nlohmann::json* find(std::string_view name) const;                  // nullptr: absent or null
  std::optional<std::string_view> first_of(FieldNames names) const;         // the first that is there

  // A whole number. `key`: what said_by calls it; empty = not noted.
  Result<std::optional<std::uint32_t>> find_whole(std::string_view key, FieldNames names, Range range) const;
  Result<std::uint32_t> whole_or(std::string_view key, FieldNames names, Range range, std::uint32_t fallback) const;
  Result<std::uint32_t> whole(std::string_view key, FieldNames names, Range range) const;   // error if absent

  Result<std::optional<bool>> find_flag(std::string_view key, std::string_view name) const;
  Result<std::optional<std::string>> find_text(std::string_view key, std::string_view name) const;
  Result<std::optional<double>> find_number(std::string_view name, double least, double most) const;

  // A list with exactly `size` entries, or with 0 to shape_limits::kMaxLayers if `size` is nullopt.
  Result<std::vector<std::uint32_t>> whole_list(std::string_view key, std::string_view name, std::optional<std::size_t> size,
                                                Range range) const;
  Result<std::vector<std::string>> text_list(std::string_view key, std::string_view name, std::optional<std::size_t> size) const;

  Error bad_words(std::string_view name, std::string_view value, std::string_view valid) const;   // value as it is
  Error bad(std::string_view name, const nlohmann::json& value, std::string_view valid) const;
  void note(std::string_view key, std::string_view name) const;
  const std::string& source() const { return source_; }
  Notes& notes() const { return *notes_; }

 private:
  Result<std::uint32_t> to_whole(std::string_view name, const nlohmann::json& value, Range range) const;
  Status check_list(std::string_view name, const nlohmann::json& value, std::optional<std::size_t> size) const;

  const nlohmann::json* object_;
  std::string source_, prefix_;
  Notes* notes_;
};

}  // namespace kvasir::artifact
