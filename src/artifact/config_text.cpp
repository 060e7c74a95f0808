#include "artifact/config_text.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvasir::artifact {
namespace {

using Json = nlohmann::json;

// Builds the value from the parser's events and stops at the first that breaks a limit.
class ConfigBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit ConfigBuilder(std::string_view source) : source_(source) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return refuse("holds bytes; valid: JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name))
      return refuse(fmt::format("the field '{}' is given twice; valid: once", name.substr(0, 64)));
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception&) override {
    return refuse(fmt::format("is not valid JSON at byte {}", byte));
  }

  std::optional<Error>& error() { return error_; }
  Json& root() { return root_; }

 private:
  bool add(Json value) { return place(std::move(value)) != nullptr; }

  bool open(Json empty) {
    if (open_.size() == kMaxConfigDepth)
      return refuse(fmt::format("is nested deeper than {} levels; valid: at most {}", kMaxConfigDepth, kMaxConfigDepth));
    Json* const placed = place(std::move(empty));
    if (placed == nullptr) return false;
    open_.push_back(placed);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // Where the value went; null if there are too many.
  Json* place(Json value) {
    if (++values_ > kMaxConfigValues) {
      (void)refuse(fmt::format("has more than {} values; valid: at most {}", kMaxConfigValues, kMaxConfigValues));
      return nullptr;
    }
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_array()) return &parent.get_ref<Json::array_t&>().emplace_back(std::move(value));
    return &(parent[key_] = std::move(value));
  }

  bool refuse(std::string_view what) {
    error_ = Error{ErrorCode::bad_input, fmt::format("{}: {}", source_, what)};
    return false;
  }

  std::string_view source_;
  Json root_;
  std::string key_;  // of the value to come, in the innermost object
  std::vector<Json*> open_;  // the objects and lists that are open, outermost first
  std::size_t values_ = 0;
  std::optional<Error> error_;
};

// Python writes Infinity and NaN, which are not JSON, into fields that nobody here reads (time_step_limit). In strings of
// the same length, so that byte numbers in messages stay true.
std::string without_python_numbers(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"-Infinity", " \"infin.\""}, {"Infinity", "\"infin.\""}, {"NaN", "\"?\""}};
  std::string out(text);
  bool quoted = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '\\' && quoted) {
      ++i;
    } else if (out[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      for (const auto& [word, instead] : kWords) {
        if (std::string_view(out).substr(i, word.size()) != word) continue;
        out.replace(i, word.size(), instead);
        i += word.size() - 1;
        break;
      }
    }
  }
  return out;
}

}  // namespace

Result<Json> parse_config(std::string_view text, std::string_view source_name) {
  const auto bad = [&](std::string_view what) {
    return Error{ErrorCode::bad_input, fmt::format("{}: {}", source_name, what)};
  };
  if (text.size() > kMaxConfigBytes)
    return bad(fmt::format("has {} bytes; a config has at most {}", text.size(), kMaxConfigBytes));
  ConfigBuilder builder(source_name);
  const std::string json = without_python_numbers(text);
  const bool complete = Json::sax_parse(json.begin(), json.end(), &builder);
  if (builder.error()) return std::move(*builder.error());
  if (!complete) return bad("is not valid JSON");
  // The parser takes a zero byte for the end and leaves the rest unread.
  if (const std::size_t zero = text.find('\0'); zero != text.npos) return bad(fmt::format("is not valid JSON at byte {}: a zero byte", zero + 1));
  if (!builder.root().is_object()) return bad(fmt::format("is a JSON {}; an object is valid", builder.root().type_name()));
  return std::move(builder.root());
}

}  // namespace kvasir::artifact
