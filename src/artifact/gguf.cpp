#include "artifact/gguf.hpp"

#include <fmt/format.h>

#include <optional>

#include "artifact/gguf_cursor.hpp"
#include "artifact/gguf_header.hpp"
#include "platform/mapped_file.hpp"

namespace kvasir::artifact {

struct GgufFile::State {
  std::string name;
  std::optional<platform::MappedFile> mapping;  // absent if the bytes are the caller's
  std::span<const std::byte> bytes;
  GgufHeader header;

  // The value of a key that must be there.
  Result<const GgufValue*> require(std::string_view key) const {
    const auto found = header.metadata_by_key.find(key);
    if (found == header.metadata_by_key.end())
      return Error{ErrorCode::bad_input, fmt::format("{}: metadata key '{}' is missing", name, key)};
    return &header.metadata[found->second].second;
  }

  Error wrong_kind(std::string_view key, const GgufValue& value, std::string_view valid) const {
    return Error{ErrorCode::bad_input,
                 fmt::format("{}: metadata key '{}' holds {}; {} is valid", name, key, kind_name(value), valid)};
  }

  template <class Element>
  Result<std::span<const Element>> array(std::string_view key, std::string_view valid) const {
    KV_ASSIGN(const GgufValue* value, require(key));
    if (const auto* array = std::get_if<GgufArray>(value))
      if (const auto* elements = std::get_if<std::vector<Element>>(&array->elements))
        return std::span<const Element>(*elements);
    return wrong_kind(key, *value, valid);
  }
};

GgufFile::GgufFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
GgufFile::GgufFile(GgufFile&&) noexcept = default;
GgufFile& GgufFile::operator=(GgufFile&&) noexcept = default;
GgufFile::~GgufFile() = default;

Result<GgufFile> GgufFile::open(const std::string& path) {
  KV_ASSIGN(auto mapping, platform::MappedFile::open(path));
  KV_ASSIGN(auto file, parse(mapping.bytes(), path));
  file.state_->mapping = std::move(mapping);
  return file;
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string name) {
  auto state = std::make_unique<State>();
  KV_ASSIGN(state->header, read_gguf_header(bytes, name));
  state->name = std::move(name);
  state->bytes = bytes;
  return GgufFile(std::move(state));
}

const std::string& GgufFile::name() const { return state_->name; }
std::uint32_t GgufFile::version() const { return state_->header.version; }
std::uint64_t GgufFile::file_bytes() const { return state_->bytes.size(); }
std::span<const std::byte> GgufFile::bytes() const { return state_->bytes; }

std::span<const std::pair<std::string_view, GgufValue>> GgufFile::metadata() const { return state_->header.metadata; }

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = state_->header.metadata_by_key.find(key);
  return found == state_->header.metadata_by_key.end() ? nullptr : &state_->header.metadata[found->second].second;
}

Result<std::string_view> GgufFile::get_string(std::string_view key) const {
  KV_ASSIGN(const GgufValue* value, state_->require(key));
  if (const auto* text = std::get_if<std::string_view>(value)) return *text;
  return state_->wrong_kind(key, *value, "a string");
}

Result<std::uint64_t> GgufFile::get_uint(std::string_view key) const {
  KV_ASSIGN(const GgufValue* value, state_->require(key));
  if (const auto* number = std::get_if<std::uint64_t>(value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(value)) {
    if (*number >= 0) return static_cast<std::uint64_t>(*number);
    return Error{ErrorCode::bad_input,
                 fmt::format("{}: metadata key '{}' is {}; a non-negative integer is valid", state_->name, key, *number)};
  }
  return state_->wrong_kind(key, *value, "a non-negative integer");
}

Result<double> GgufFile::get_float(std::string_view key) const {
  KV_ASSIGN(const GgufValue* value, state_->require(key));
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::int64_t>(value)) return static_cast<double>(*number);
  return state_->wrong_kind(key, *value, "a number");
}

Result<bool> GgufFile::get_bool(std::string_view key) const {
  KV_ASSIGN(const GgufValue* value, state_->require(key));
  if (const auto* truth = std::get_if<bool>(value)) return *truth;
  return state_->wrong_kind(key, *value, "a bool");
}

Result<std::span<const std::string_view>> GgufFile::get_strings(std::string_view key) const {
  return state_->array<std::string_view>(key, "an array of strings");
}

Result<std::span<const std::int64_t>> GgufFile::get_ints(std::string_view key) const {
  return state_->array<std::int64_t>(key, "an array of integers");
}

Result<std::span<const double>> GgufFile::get_floats(std::string_view key) const {
  return state_->array<double>(key, "an array of floats");
}

std::span<const GgufTensor> GgufFile::tensors() const { return state_->header.tensors; }

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = state_->header.tensors_by_name.find(name);
  return found == state_->header.tensors_by_name.end() ? nullptr : &state_->header.tensors[found->second];
}

}  // namespace kvasir::artifact
