#include "server/api/field_table.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace kvasir::server::api {
namespace {

using enum FieldType;
using enum FieldStatus;

std::string words_listed(std::string_view words) {
  std::string out(words);
  for (std::size_t at = 0; (at = out.find('|', at)) != std::string::npos; at += 2) out.replace(at, 1, ", ");
  return out;
}

std::string number_words(double value) {
  return value == static_cast<double>(static_cast<long long>(value)) && value > -9e18 && value < 9e18
             ? fmt::format("{}", static_cast<long long>(value))
             : fmt::format("{}", value);
}

std::string_view unit_of(FieldType type) {
  switch (type) {
    case text:
      return " bytes";
    case texts:
    case text_list:
    case token_list:
    case objects:
    case prompt:
    case bias_map:
    case object:
      return " entries";
    default:
      return "";
  }
}

}  // namespace

const FieldSpec* find_field(std::string_view name, Route route) {
  const auto found = std::find_if(fields().begin(), fields().end(), [&](const FieldSpec& field) {
    return contains(field.routes, route) && field.name == name;
  });
  return found == fields().end() ? nullptr : &*found;
}

bool has_members(std::string_view name, Route route) {
  return std::any_of(fields().begin(), fields().end(), [&](const FieldSpec& field) {
    return contains(field.routes, route) && field.name.size() > name.size() + 1 && field.name.starts_with(name) &&
           field.name[name.size()] == '.';
  });
}

std::string_view to_string(FieldType type) {
  switch (type) {
    case boolean:
      return "true or false";
    case flag_or_word:
      return "true, false or a word";
    case integer:
      return "a whole number";
    case number:
      return "a number";
    case text:
      return "text";
    case texts:
      return "text or a list of texts";
    case text_list:
      return "a list of texts";
    case token_list:
      return "a list of token ids";
    case bias_map:
      return "an object of token id to number";
    case object:
      return "an object";
    case objects:
      return "a list of objects";
    case content:
      return "text or a list of text parts";
    case prompt:
      return "text, a list of texts, a list of token ids, or a list of lists of token ids";
    case any:
      break;
  }
  return "anything";
}

std::string_view to_string(FieldStatus status) {
  switch (status) {
    case supported:
      return "supported";
    case ignored:
      return "accepted, ignored";
    case loose:
      return "accepted with a warning";
    case refused:
      break;
  }
  return "refused";
}

std::string range_words(const FieldSpec& field) {
  if (field.status == refused) return {};
  if (!field.words.empty()) return fmt::format("one of: {}", words_listed(field.words));
  const Range& range = field.range;
  const bool bounded_above = range.max < std::numeric_limits<double>::infinity();
  if (!bounded_above) return {};
  if (field.name == "seed") return "-2^63 to 2^64 - 1";
  const std::string_view unit = unit_of(field.type);
  if (range.above_min)
    return fmt::format("above {}, up to {}{}", number_words(range.min), number_words(range.max), unit);
  if (!unit.empty() && range.min == 0) return fmt::format("at most {}{}", number_words(range.max), unit);
  return fmt::format("{} to {}{}", number_words(range.min), number_words(range.max), unit);
}

std::string valid_words(const FieldSpec& field) {
  if (field.status == refused) {
    return field.words.empty() ? "leave it out" : fmt::format("leave it out, or {}", field.words);
  }
  const std::string range = range_words(field);
  if (range.empty()) return std::string(to_string(field.type));
  return fmt::format("{}, {}", to_string(field.type), range);
}

}  // namespace kvasir::server::api
