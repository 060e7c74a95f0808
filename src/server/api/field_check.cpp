#include "server/api/field_check.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/ids.hpp"

namespace kvasir::server::api {
namespace {

constexpr double kExactDouble = 9007199254740992.0;  // 2^53: whole numbers up to it are exact as doubles
constexpr double kMaxBias = 100;
constexpr std::size_t kMaxWordBytes = 1024;  // of one stop text or bad word

bool has_fraction(const Json& value) {
  return value.is_number_float() && std::trunc(value.get<double>()) != value.get<double>();
}

bool within(double value, const Range& range) {
  return (range.above_min ? value > range.min : value >= range.min) && value <= range.max;
}

bool is_word_of(std::string_view word, std::string_view words) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find('|'), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

class Checker {
 public:
  explicit Checker(const CheckOptions& options) : options_(options) {}

  // `prefix`: of the rows; `path`: of the value, both with the dot that joins them to a name, or empty.
  ApiStatus check_object(const Json& object, const std::string& prefix, const std::string& path) {
    for (const auto& [name, value] : object.items()) {
      if (value.is_null()) continue;
      const FieldSpec* field = find_field(prefix + name, options_.route);
      if (field == nullptr) {
        KV_TRY(unknown(path + name));
      } else {
        KV_TRY(check_field(*field, value, path + name));
      }
    }
    return api_ok();
  }

  Warnings& warnings() { return warnings_; }

 private:
  ApiStatus unknown(const std::string& path) {
    if (options_.strict)
      return bad_request("unknown_parameter", path,
                         fmt::format("{} is not a known field; valid: the fields in docs/api.md", path));
    warn(path);
    return api_ok();
  }

  void warn(std::string_view path) {
    const auto plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
             c == '.' || c == '[' || c == ']';
    };
    if (path.size() > kMaxWarningBytes || !std::all_of(path.begin(), path.end(), plain)) path = "(unnamed)";
    if (warnings_.size() == kMaxWarnings) return;
    if (std::find(warnings_.begin(), warnings_.end(), path) == warnings_.end()) warnings_.emplace_back(path);
  }

  ApiStatus check_field(const FieldSpec& field, const Json& value, const std::string& path) {
    if (field.status == FieldStatus::refused) {
      if (!field.words.empty() && value == Json::parse(field.words)) return api_ok();
      return bad_request("unsupported_parameter", path,
                         fmt::format("{} is {}: {}; valid: {}", path, quoted(value), field.does, valid_words(field)));
    }
    if (field.status == FieldStatus::loose) {
      if (options_.strict) {
        return bad_request("unsupported_parameter", path,
                           fmt::format("{} is {}, which has no effect here ({}); valid: leave it out", path,
                                       quoted(value), field.does));
      }
      warn(path);
    }
    return check_type(field, value, path);
  }

  ApiStatus check_type(const FieldSpec& field, const Json& value, const std::string& path) {
    switch (field.type) {
      case FieldType::boolean:
        return value.is_boolean() ? api_ok() : wrong_type(field, value, path);
      case FieldType::flag_or_word:
        if (value.is_boolean()) return api_ok();
        return value.is_string() ? check_text(field, value, path) : wrong_type(field, value, path);
      case FieldType::integer:
        return check_integer(field, value, path);
      case FieldType::number:
        return value.is_number() ? check_number(field, value, path) : wrong_type(field, value, path);
      case FieldType::text:
        return value.is_string() ? check_text(field, value, path) : wrong_type(field, value, path);
      case FieldType::texts:
        return value.is_string() ? check_word(value, path) : check_words(field, value, path);
      case FieldType::text_list:
        return check_words(field, value, path);
      case FieldType::token_list:
        return check_tokens(field, value, path);
      case FieldType::bias_map:
        return check_biases(field, value, path);
      case FieldType::object:
        return check_members(field, value, path);
      case FieldType::objects:
        return check_objects(field, value, path);
      case FieldType::content:
        return value.is_string() ? api_ok() : check_objects(field, value, path);
      case FieldType::prompt:
        return check_prompt(field, value, path);
      case FieldType::any:
        break;
    }
    return api_ok();
  }

  static ApiError wrong_type(const FieldSpec& field, const Json& value, const std::string& path) {
    return invalid_type(path, value, valid_words(field));
  }

  static ApiStatus check_number(const FieldSpec& field, const Json& value, const std::string& path) {
    if (within(value.get<double>(), field.range)) return api_ok();
    return invalid_value(path, quoted(value), valid_words(field));
  }

  static ApiStatus check_integer(const FieldSpec& field, const Json& value, const std::string& path) {
    if (!value.is_number() || has_fraction(value)) return wrong_type(field, value, path);
    if (value.is_number_float() && std::abs(value.get<double>()) > kExactDouble) {
      return invalid_value(path, quoted(value), valid_words(field));
    }
    return check_number(field, value, path);
  }

  static std::string word_choices(const FieldSpec& field) {
    return field.type == FieldType::flag_or_word ? valid_words(field) : range_words(field);
  }

  static ApiStatus check_text(const FieldSpec& field, const Json& value, const std::string& path) {
    const auto& text = value.get_ref<const std::string&>();
    if (!field.words.empty()) {
      return is_word_of(text, field.words) ? api_ok()
                                           : ApiStatus(invalid_value(path, quoted(value), word_choices(field)));
    }
    if (within(static_cast<double>(text.size()), field.range)) return api_ok();
    return invalid_value(path, fmt::format("{} bytes", text.size()), valid_words(field));
  }

  static ApiStatus check_word(const Json& value, const std::string& path) {
    if (!value.is_string()) return invalid_type(path, value, "text");
    const std::size_t bytes = value.get_ref<const std::string&>().size();
    if (bytes >= 1 && bytes <= kMaxWordBytes) return api_ok();
    return invalid_value(path, fmt::format("{} bytes", bytes), fmt::format("text of 1 to {} bytes", kMaxWordBytes));
  }

  static ApiStatus check_count(const FieldSpec& field, const Json& value, const std::string& path) {
    if (within(static_cast<double>(value.size()), field.range)) return api_ok();
    return invalid_value(path, fmt::format("{} of {}", type_words(value), value.size()), valid_words(field));
  }

  static ApiStatus check_words(const FieldSpec& field, const Json& value, const std::string& path) {
    if (!value.is_array()) return wrong_type(field, value, path);
    KV_TRY(check_count(field, value, path));
    for (std::size_t i = 0; i < value.size(); ++i) KV_TRY(check_word(value[i], fmt::format("{}[{}]", path, i)));
    return api_ok();
  }

  ApiStatus check_token(const Json& value, const std::string& path, std::size_t index) const {
    if (value.is_number_integer() && value >= 0 && value < options_.vocabulary) [[likely]]
      return api_ok();
    const std::string valid = fmt::format("token ids from 0 to {}", static_cast<std::int64_t>(options_.vocabulary) - 1);
    const std::string entry = fmt::format("{}[{}]", path, index);
    if (!value.is_number_integer()) return invalid_type(entry, value, valid);
    return invalid_value(entry, quoted(value), valid);
  }

  ApiStatus check_tokens(const FieldSpec& field, const Json& value, const std::string& path) const {
    if (!value.is_array()) return wrong_type(field, value, path);
    KV_TRY(check_count(field, value, path));
    for (std::size_t i = 0; i < value.size(); ++i) KV_TRY(check_token(value[i], path, i));
    return api_ok();
  }

  ApiStatus check_biases(const FieldSpec& field, const Json& value, const std::string& path) const {
    if (!value.is_object()) return wrong_type(field, value, path);
    KV_TRY(check_count(field, value, path));
    for (const auto& [key, bias] : value.items()) {
      std::uint64_t token = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
      if (error != std::errc() || end != key.data() + key.size() || token >= options_.vocabulary) {
        return invalid_value(
            path, fmt::format("for token {}", quoted(Json(key))),
            fmt::format("keys from \"0\" to \"{}\"", static_cast<std::int64_t>(options_.vocabulary) - 1));
      }
      const std::string entry = fmt::format("{}[\"{}\"]", path, token);
      const std::string valid = fmt::format("a number from {} to {}", -kMaxBias, kMaxBias);
      if (!bias.is_number()) return invalid_type(entry, bias, valid);
      if (!(std::abs(bias.get<double>()) <= kMaxBias)) return invalid_value(entry, quoted(bias), valid);
    }
    return api_ok();
  }

  ApiStatus check_members(const FieldSpec& field, const Json& value, const std::string& path) {
    if (!value.is_object()) return wrong_type(field, value, path);
    if (has_members(field.name, options_.route)) {
      return check_object(value, fmt::format("{}.", field.name), path + ".");
    }
    return check_count(field, value, path);
  }

  ApiStatus check_objects(const FieldSpec& field, const Json& value, const std::string& path) {
    if (!value.is_array()) return wrong_type(field, value, path);
    KV_TRY(check_count(field, value, path));
    const std::string prefix = fmt::format("{}[].", field.name);
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string entry = fmt::format("{}[{}]", path, i);
      if (!value[i].is_object()) return invalid_type(entry, value[i], "an object");
      KV_TRY(check_object(value[i], prefix, entry + "."));
    }
    return api_ok();
  }

  // Which of the shapes of a list of prompts it is, its first entry decides.
  ApiStatus check_prompt(const FieldSpec& field, const Json& value, const std::string& path) const {
    if (value.is_string()) return api_ok();
    if (!value.is_array() || options_.route == Route::tokenize) {
      return invalid_type(path, value, options_.route == Route::tokenize ? "text" : valid_words(field));
    }
    if (value.empty()) return invalid_value(path, "an empty list", valid_words(field));
    if (value[0].is_number()) return check_prompt_tokens(value, path);
    KV_TRY(check_count(field, value, path));
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string entry = fmt::format("{}[{}]", path, i);
      if (value[i].type() != value[0].type()) return invalid_type(entry, value[i], "the same as the first entry");
      if (value[i].is_array()) {
        KV_TRY(check_prompt_tokens(value[i], entry));
      } else if (!value[i].is_string()) {
        return invalid_type(entry, value[i], "text or a list of token ids");
      }
    }
    return api_ok();
  }

  ApiStatus check_prompt_tokens(const Json& value, const std::string& path) const {
    if (value.empty()) return invalid_value(path, "an empty list", "at least one token id");
    for (std::size_t i = 0; i < value.size(); ++i) KV_TRY(check_token(value[i], path, i));
    return api_ok();
  }

  const CheckOptions& options_;
  Warnings warnings_;
};

}  // namespace

ApiResult<Warnings> check_fields(const Json& body, const CheckOptions& options) {
  Checker checker(options);
  KV_TRY(checker.check_object(body, "", ""));
  return std::move(checker.warnings());
}

const Json* member(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool flag_of(const Json& object, std::string_view name, bool standard) {
  const Json* value = member(object, name);
  return value == nullptr ? standard : value->get<bool>();
}

float number_of(const Json& object, std::string_view name, float standard) {
  const Json* value = member(object, name);
  return value == nullptr ? standard : value->get<float>();
}

std::string text_of(const Json& object, std::string_view name) {
  const Json* value = member(object, name);
  return value == nullptr ? std::string() : value->get<std::string>();
}

std::int64_t integer_of(const Json& value) {
  if (value.is_number_unsigned())
    return static_cast<std::int64_t>(value.get<std::uint64_t>());  // seeds use all 64 bits
  return value.is_number_float() ? static_cast<std::int64_t>(value.get<double>()) : value.get<std::int64_t>();
}

}  // namespace kvasir::server::api
