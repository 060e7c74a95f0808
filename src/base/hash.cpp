#include "base/hash.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxhash.h>

#include "base/check.hpp"

namespace kvasir {

// The EVP calls fail only without memory or without a SHA-256 provider, neither of which anyone can answer.
struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  bool finished = false;

  State() { KV_CHECK(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1, "SHA-256 is available"); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  KV_CHECK(!state_->finished, "a finished SHA-256 takes no more bytes");
  KV_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "SHA-256 takes any bytes");
}

Sha256Digest Sha256::finish() {
  KV_CHECK(!state_->finished, "a SHA-256 finishes once");
  state_->finished = true;
  Sha256Digest digest;
  unsigned int size = 0;
  const int status = EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()), &size);
  KV_CHECK(status == 1 && size == digest.size(), "a SHA-256 digest has 32 bytes");
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hasher;
  hasher.update(bytes);
  return hasher.finish();
}

namespace {

Hash128 from_xxh(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

}  // namespace

struct Xxh128::State {
  XXH3_state_t* xxh = XXH3_createState();

  explicit State(std::uint64_t seed) {
    KV_CHECK(xxh != nullptr && XXH3_128bits_reset_withSeed(xxh, seed) == XXH_OK, "an XXH3 state can be made");
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Xxh128::Xxh128(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {}
Xxh128::~Xxh128() = default;
Xxh128::Xxh128(Xxh128&&) noexcept = default;
Xxh128& Xxh128::operator=(Xxh128&&) noexcept = default;

void Xxh128::update(std::span<const std::byte> bytes) {
  if (!bytes.empty())  // XXH3 refuses a null pointer even for no bytes
    KV_CHECK(XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size()) == XXH_OK, "XXH3 takes any bytes");
}

Hash128 Xxh128::digest() const { return from_xxh(XXH3_128bits_digest(state_->xxh)); }

Hash128 xxh128(std::span<const std::byte> bytes, std::uint64_t seed) {
  return from_xxh(XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed));
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

std::string to_hex(Hash128 hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

}  // namespace kvasir
