#include "artifact/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <variant>

#include "base/check.hpp"

namespace kvasir::artifact {
namespace {

constexpr std::string_view kTag("kvasir-id-1\0", 12);
constexpr std::string_view kTokenizerTag("kvasir-tokenizer-1\0", 19);
constexpr std::size_t kHashStep = std::size_t{4} << 20;   // bytes between two looks at go_on

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

void update_with_number(Sha256& hasher, std::uint64_t number) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i) & 0xff);
  hasher.update(bytes);
}

void update_with_length(Sha256& hasher, std::string_view text) {
  update_with_number(hasher, text.size());
  hasher.update(bytes_of(text));
}

// A value with its kind. Integers of either sign count by their value.
struct ValueHasher {
  Sha256& hasher;

  void kind(char letter) const { hasher.update(bytes_of({&letter, 1})); }
  void operator()(bool value) const { kind('b'), update_with_number(hasher, value ? 1 : 0); }
  void operator()(std::int64_t value) const {
    kind(value < 0 ? 'n' : 'u'), update_with_number(hasher, static_cast<std::uint64_t>(value));
  }
  void operator()(std::uint64_t value) const { kind('u'), update_with_number(hasher, value); }
  void operator()(double value) const { kind('d'), update_with_number(hasher, std::bit_cast<std::uint64_t>(value)); }
  void operator()(std::string_view value) const { kind('s'), update_with_length(hasher, value); }
  void operator()(const GgufArray& array) const {
    kind('a'), update_with_number(hasher, array.size());
    std::visit([this](const auto& elements) { for (const auto& element : elements) (*this)(element); }, array.elements);
  }
};

}  // namespace

IdParts& IdParts::add(std::string_view key, std::string_view value) {
  KV_CHECK(!key.empty(), "a part of an id has a name");
  const bool added = parts_.emplace(key, value).second;
  KV_CHECK(added, fmt::format("a part of an id is added once: {}", key));
  return *this;
}

IdParts& IdParts::add(std::string_view key, std::uint64_t value) { return add(key, fmt::format("{}", value)); }
IdParts& IdParts::add(std::string_view key, double value) { return add(key, fmt::format("{:a}", value)); }
IdParts& IdParts::add(std::string_view key, const Sha256Digest& value) { return add(key, to_hex(value)); }

Sha256Digest IdParts::id() const {
  Sha256 hasher;
  hasher.update(bytes_of(kTag));
  for (const auto& [key, value] : parts_) {
    update_with_length(hasher, key);
    update_with_length(hasher, value);
  }
  return hasher.finish();
}

std::optional<Sha256Digest> RecordedId::id() const {
  return undetermined.empty() ? std::optional(parts.id()) : std::nullopt;
}

Sha256Digest content_hash(const GgufFile& file) { return sha256(file.bytes()); }

std::optional<Sha256Digest> content_hash(const GgufFile& file, const std::function<bool(std::uint64_t done)>& go_on) {
  Sha256 hasher;
  const std::span<const std::byte> bytes = file.bytes();
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t step = std::min(kHashStep, bytes.size() - done);
    hasher.update(bytes.subspan(done, step));
    done += step;
    if (!go_on(done)) return std::nullopt;
  }
  return hasher.finish();
}

Sha256Digest tokenizer_hash(const GgufFile& file) {
  std::map<std::string_view, const GgufValue*> values;
  for (const auto& [key, value] : file.metadata()) {
    if (key.starts_with("tokenizer.") && !key.starts_with("tokenizer.chat_template")) values.emplace(key, &value);
  }
  Sha256 hasher;
  hasher.update(bytes_of(kTokenizerTag));
  for (const auto& [key, value] : values) {
    update_with_length(hasher, key);
    std::visit(ValueHasher{hasher}, *value);
  }
  return hasher.finish();
}

}  // namespace kvasir::artifact
