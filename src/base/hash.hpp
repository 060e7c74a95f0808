// Hashes of bytes: SHA-256 (identity that an adversary must not forge: files, artifact records) and the 128-bit XXH3
// (fast, not cryptographic: tables, checksums). Both are fixed by their specifications: equal on every machine.
// Thread rule: one-shot functions any thread; a hasher belongs to one thread.
// Source: FIPS 180-4 (through OpenSSL's EVP); XXH3 of xxHash 0.8.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kvasir {

using Sha256Digest = std::array<std::byte, 32>;

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
};

Sha256Digest sha256(std::span<const std::byte> bytes);
Hash128 xxh128(std::span<const std::byte> bytes, std::uint64_t seed = 0);

// Streaming forms: any split of the same bytes into updates gives the one-shot hash.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // The digest of all updates so far. REQUIRES: called once, no update afterwards.
  Sha256Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Xxh128 {
 public:
  explicit Xxh128(std::uint64_t seed = 0);
  ~Xxh128();
  Xxh128(Xxh128&&) noexcept;
  Xxh128& operator=(Xxh128&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // The hash of all updates so far; updates may follow.
  Hash128 digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Lower-case hexadecimal, as sha256sum and xxh128sum print it.
std::string to_hex(std::span<const std::byte> bytes);
std::string to_hex(Hash128 hash);

}  // namespace kvasir
