#include "artifact/config_fields.hpp"

#include <fmt/format.h>

#include <cmath>

#include "artifact/model_shape.hpp"

namespace kvasir::artifact {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kShownBytes = 48;  // of a value in a message

std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kShownBytes ? text : text.substr(0, kShownBytes - 3) + "...";
}

std::string valid_range(Range range) { return fmt::format("whole numbers from {} to {}", range.least, range.most); }

}  // namespace

const Json* ConfigFields::find(std::string_view name) const {
  const Json* at = object_;
  while (true) {
    const std::size_t dot = name.find('.');
    if (!at->is_object()) return nullptr;
    const auto member = at->find(std::string(name.substr(0, dot)));
    if (member == at->end() || member->is_null()) return nullptr;
    at = &*member;
    if (dot == std::string_view::npos) return at;
    name.remove_prefix(dot + 1);
  }
}

std::optional<std::string_view> ConfigFields::first_of(FieldNames names) const {
  for (const std::string_view name : names)
    if (has(name)) return name;
  return std::nullopt;
}

Error ConfigFields::bad_words(std::string_view name, std::string_view value, std::string_view valid) const {
  return Error{ErrorCode::bad_input, fmt::format("{}: field '{}{}' is {}; valid: {}", source_, prefix_, name, value, valid)};
}

Error ConfigFields::bad(std::string_view name, const Json& value, std::string_view valid) const {
  return bad_words(name, shown(value), valid);
}

void ConfigFields::note(std::string_view key, std::string_view name) const {
  if (!key.empty()) (*notes_)[std::string(key)] = fmt::format("{}{}", prefix_, name);
}

Result<std::optional<ConfigFields>> ConfigFields::within(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<ConfigFields>();
  if (!value->is_object()) return bad(name, *value, "an object");
  return std::optional<ConfigFields>(ConfigFields(*value, source_, fmt::format("{}{}.", prefix_, name), *notes_));
}

Result<std::uint32_t> ConfigFields::to_whole(std::string_view name, const Json& value, Range range) const {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number >= range.least && number <= range.most) return static_cast<std::uint32_t>(number);
  }
  return bad(name, value, valid_range(range));
}

Result<std::optional<std::uint32_t>> ConfigFields::find_whole(std::string_view key, FieldNames names, Range range) const {
  const auto name = first_of(names);
  if (!name) return std::optional<std::uint32_t>();
  KV_ASSIGN(const std::uint32_t number, to_whole(*name, *find(*name), range));
  note(key, *name);
  return std::optional<std::uint32_t>(number);
}

Result<std::uint32_t> ConfigFields::whole_or(std::string_view key, FieldNames names, Range range,
                                             std::uint32_t fallback) const {
  KV_ASSIGN(const auto number, find_whole(key, names, range));
  return number.value_or(fallback);
}

Result<std::uint32_t> ConfigFields::whole(std::string_view key, FieldNames names, Range range) const {
  KV_ASSIGN(const auto number, find_whole(key, names, range));
  if (number) return *number;
  std::string others;
  for (const std::string_view name : names)
    if (name != *names.begin()) others += fmt::format("{}'{}'", others.empty() ? " (or " : ", ", name);
  return Error{ErrorCode::bad_input, fmt::format("{}: field '{}{}'{} is missing; valid: {}", source_, prefix_, *names.begin(),
                                                 others.empty() ? "" : others + ")", valid_range(range))};
}

Result<std::optional<bool>> ConfigFields::find_flag(std::string_view key, std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return bad(name, *value, "true or false");
  note(key, name);
  return std::optional<bool>(value->get<bool>());
}

Result<std::optional<std::string>> ConfigFields::find_text(std::string_view key, std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return bad(name, *value, "a string");
  note(key, name);
  return std::optional<std::string>(value->get<std::string>());
}

Result<std::optional<double>> ConfigFields::find_number(std::string_view name, double least, double most) const {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<double>();
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= least && number <= most)) return bad(name, *value, fmt::format("numbers from {} to {}", least, most));
  return std::optional<double>(number);
}

Status ConfigFields::check_list(std::string_view name, const Json& value, std::optional<std::size_t> size) const {
  const std::string valid = size ? fmt::format("a list of {} entries, one a layer", *size) : "a list";
  if (!value.is_array()) return bad(name, value, valid);
  const std::size_t most = size.value_or(shape_limits::kMaxLayers);
  if (value.size() > most || (size && value.size() != *size))
    return bad_words(name, fmt::format("a list of {} entries", value.size()),
               size ? valid : fmt::format("a list of at most {} entries", most));
  return ok_status();
}

Result<std::vector<std::uint32_t>> ConfigFields::whole_list(std::string_view key, std::string_view name,
                                                            std::optional<std::size_t> size, Range range) const {
  std::vector<std::uint32_t> numbers;
  const Json* value = find(name);
  if (value == nullptr) return numbers;
  KV_TRY(check_list(name, *value, size));
  for (const Json& entry : *value) {
    KV_ASSIGN(const std::uint32_t number, to_whole(fmt::format("{}[{}]", name, numbers.size()), entry, range));
    numbers.push_back(number);
  }
  note(key, name);
  return numbers;
}

Result<std::vector<std::string>> ConfigFields::text_list(std::string_view key, std::string_view name,
                                                         std::optional<std::size_t> size) const {
  std::vector<std::string> texts;
  const Json* value = find(name);
  if (value == nullptr) return texts;
  KV_TRY(check_list(name, *value, size));
  for (const Json& entry : *value) {
    if (!entry.is_string()) return bad(fmt::format("{}[{}]", name, texts.size()), entry, "a string");
    texts.push_back(entry.get<std::string>());
  }
  note(key, name);
  return texts;
}

}  // namespace kvasir::artifact
