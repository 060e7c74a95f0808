#include "server/api/json_body.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace kvasir::server::api {
namespace {

constexpr std::size_t kPathParts = 4;  // of a path in a message; deeper ones end in "..."
constexpr std::size_t kPathKeyBytes = 64;

// Builds the value from the parser's events and stops at the first that breaks a limit.
// Source: nlohmann/json's SAX interface; every event returns whether to go on.
class BodyBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit BodyBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return refuse("bytes", "JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    if (members.size() == limits_.max_members) {
      return refuse(fmt::format("more than {} members", limits_.max_members),
                    fmt::format("at most {}", limits_.max_members));
    }
    // Past the map's own insertion, which searches for the key each time; end_object() looks for duplicates once.
    members.emplace_back(std::move(name), nullptr);
    return true;
  }

  bool end_object() override {
    const auto& members = open_.back()->get_ref<const Json::object_t&>();
    std::vector<std::string_view> names;
    names.reserve(members.size());
    for (const auto& member : members) names.emplace_back(member.first);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return close();
    const std::string name = path(*twice);
    error_ = bad_request("invalid_json", name, fmt::format("{} is given twice; valid: once", name));
    return false;
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& exception) override {
    const std::string path = this->path();
    error_ = bad_request("invalid_json", path,
                         fmt::format("{} is not valid JSON at byte {}: {}", path, byte, reason(exception.what())));
    return false;
  }

  std::optional<ApiError>& error() { return error_; }
  Json& root() { return root_; }

 private:
  // The parser's own words without its prefix and without the text it read, which may be anybody's prompt.
  static std::string reason(std::string_view what) {
    if (const auto end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
    if (const auto end = what.find(": "); end != std::string_view::npos && what.starts_with("parse error")) {
      what.remove_prefix(end + 2);
    }
    return std::string(what.substr(0, what.find("; last read")));
  }

  bool add(Json value) { return place(std::move(value)) != nullptr; }

  bool open(Json empty) {
    if (open_.size() == limits_.max_depth) {
      return refuse(fmt::format("nested deeper than {} levels", limits_.max_depth),
                    fmt::format("at most {} levels", limits_.max_depth));
    }
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
    if (++values_ > limits_.max_values) {
      (void)refuse(fmt::format("more than {} values", limits_.max_values),
                   fmt::format("at most {}", limits_.max_values));
      return nullptr;
    }
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_array()) return &parent.get_ref<Json::array_t&>().emplace_back(std::move(value));
    return &(parent.get_ref<Json::object_t&>().back().second = std::move(value));
  }

  bool refuse(std::string_view what, std::string_view valid) {
    error_ = bad_request("invalid_json", path(), fmt::format("{} is {}; valid: {}", path(), what, valid));
    return false;
  }

  // Of the value being read: "body" at the top, else "messages[2].content". `member`: another one of the innermost
  // object.
  std::string path(std::string_view member = {}) const {
    std::string out;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (i == kPathParts) return out + "...";
      const Json& part = *open_[i];
      const bool innermost = i + 1 == open_.size();
      if (part.is_array()) {
        // A list that is open further in holds its last entry already; the innermost one awaits the next.
        out += fmt::format("[{}]", part.size() - (innermost ? 0 : 1));
      } else if (!part.empty()) {
        std::string_view name = part.get_ref<const Json::object_t&>().back().first;
        if (innermost && !member.empty()) name = member;
        out += fmt::format("{}{}", out.empty() ? "" : ".", name.substr(0, kPathKeyBytes));
      }
    }
    return out.empty() ? "body" : out;
  }

  const JsonLimits& limits_;
  Json root_;
  std::vector<Json*>
      open_;  // the objects and lists that are open, outermost first; each the last within the one before
  std::size_t values_ = 0;
  std::optional<ApiError> error_;
};

}  // namespace

ApiResult<Json> parse_body(std::string_view body, const JsonLimits& limits) {
  if (body.size() > limits.max_bytes) return body_too_large(body.size(), limits.max_bytes);
  BodyBuilder builder(limits);
  const bool complete = Json::sax_parse(body.begin(), body.end(), &builder);
  if (builder.error()) return std::move(*builder.error());
  KV_CHECK(complete, "a parse that stops says why");
  // The parser takes a zero byte for the end and leaves the rest unread.
  if (const std::size_t zero = body.find('\0'); zero != body.npos)
    return bad_request("invalid_json", "body", fmt::format("body is not valid JSON at byte {}: a zero byte", zero + 1));
  if (!builder.root().is_object()) return invalid_type("body", builder.root(), "a JSON object");
  return std::move(builder.root());
}

}  // namespace kvasir::server::api
