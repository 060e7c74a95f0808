#include "artifact/record.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <span>

#include "base/check.hpp"

namespace kvasir::artifact {
namespace {

constexpr std::string_view kTag("kvasir-id-1\0", 12);

void update_with_length(Sha256& hasher, std::string_view text) {
  std::array<std::byte, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::byte>(std::uint64_t{text.size()} >> (8 * i) & 0xff);
  hasher.update(length);
  hasher.update(std::as_bytes(std::span(text)));
}

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
  hasher.update(std::as_bytes(std::span(kTag)));
  for (const auto& [key, value] : parts_) {
    update_with_length(hasher, key);
    update_with_length(hasher, value);
  }
  return hasher.finish();
}

Sha256Digest content_hash(const GgufFile& file) { return sha256(file.bytes()); }

}  // namespace kvasir::artifact
