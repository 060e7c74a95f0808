#include "base/hash.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace kvasir {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + 7) % 256);
  return bytes;
}

TEST(Hash, Sha256GivesThePublishedDigests) {
  EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256(bytes_of("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

struct XxhVector {
  std::size_t size;
  const char* plain;
  const char* seeded;
};

TEST(Hash, Xxh128GivesTheReferenceLibrarysHashesInEveryLengthClass) {
  constexpr std::uint64_t kSeed = 0x9E3779B97F4A7C15;
  for (const XxhVector& v : {
           XxhVector{0, "99aa06d3014798d86001c324468d497f", "d142977a2cca554b4ca5176998171787"},
           XxhVector{1, "495b62073ef70ca44c5cca45d0f4811f", "00a711eb5a736b262f3acd3805f81de3"},
           XxhVector{16, "650fe308c566747df853dd94614dfa07", "be0f27bac4d1f58f4e683254a04c377f"},
           XxhVector{129, "6881633650cd8924c51bc887976aef63", "b8c736db70349640a1c74215b3db7ab4"},
           XxhVector{240, "de57aab31e77a2ff93e173833f75ab66", "5b131678a4a9b8f4de896b7f1ae3bc6f"},
           XxhVector{241, "92b991a7192f3f080b3b630948ce4a00", "c39cbfb460caf47e422e82e8913e49e0"},
           XxhVector{1000, "f534f51e82a81d29989765d0ea7a5ecd", "4022020c7b531e8075b5719d9f31a6a2"},
       }) {
    EXPECT_EQ(to_hex(xxh128(pattern(v.size))), v.plain) << v.size;
    EXPECT_EQ(to_hex(xxh128(pattern(v.size), kSeed)), v.seeded) << v.size;
  }
}

TEST(Hash, AnySplitIntoUpdatesGivesTheOneShotHash) {
  const std::vector<std::byte> bytes = pattern(1000);
  for (const std::size_t step : {1u, 7u, 63u, 64u, 999u, 1000u}) {
    Sha256 sha;
    Xxh128 xxh(5);
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      const auto piece = std::span(bytes).subspan(at, std::min(step, bytes.size() - at));
      sha.update(piece);
      sha.update({});
      xxh.update(piece);
      xxh.update({});
    }
    EXPECT_EQ(sha.finish(), sha256(bytes));
    EXPECT_EQ(xxh.digest(), xxh128(bytes, 5));
  }
  EXPECT_EQ(to_hex(sha256(bytes)), "5097e7d587352f5097062ae679f37bda5802d9f875aba14c8cb4d1a188ada179");
}

TEST(Hash, AnXxhDigestMayBeTakenOnTheWay) {
  Xxh128 hasher;
  hasher.update(bytes_of("ab"));
  EXPECT_EQ(hasher.digest(), xxh128(bytes_of("ab")));
  hasher.update(bytes_of("c"));
  EXPECT_EQ(hasher.digest(), xxh128(bytes_of("abc")));
}

TEST(HashDeathTest, AFinishedShaTakesNoMore) {
  Sha256 hasher;
  (void)hasher.finish();
  EXPECT_DEATH(hasher.update(bytes_of("x")), "takes no more bytes");
  EXPECT_DEATH((void)hasher.finish(), "finishes once");
}

}  // namespace
}  // namespace kvasir
