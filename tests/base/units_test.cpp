#include "base/units.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace kvasir {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(Units, BytesAreShownInBinaryUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(755'000), "737.3 KiB");
  EXPECT_EQ(format_bytes(3ull << 29), "1.50 GiB");
  EXPECT_EQ(format_bytes(std::uint64_t{5} << 40), "5.00 TiB");
}

TEST(Units, SizesAreReadInEveryFormTheMessageShows) {
  EXPECT_EQ(*parse_bytes("1073741824"), 1u << 30);
  EXPECT_EQ(*parse_bytes("512M"), 512u << 20);
  EXPECT_EQ(*parse_bytes("512MiB"), 512u << 20);
  EXPECT_EQ(*parse_bytes("512 mib"), 512u << 20);
  EXPECT_EQ(*parse_bytes("1.5G"), 3u << 29);
  EXPECT_EQ(*parse_bytes("2GB"), 2'000'000'000u);
  EXPECT_EQ(*parse_bytes("7b"), 7u);
  EXPECT_EQ(*parse_bytes("1T"), std::uint64_t{1} << 40);
}

TEST(Units, WrongSizesAreRefusedWithValidForms) {
  for (const char* wrong : {"", "-1", "M", "12Q", "1..5G", "9E30", "inf", "nan", "99999999T", "1 0", "0x10"}) {
    const auto bytes = parse_bytes(wrong);
    ASSERT_FALSE(bytes.ok()) << wrong;
    EXPECT_EQ(bytes.error().code, ErrorCode::bad_input);
    EXPECT_NE(bytes.error().message.find("512MiB"), std::string::npos) << "shows a valid form";
  }
}

TEST(Units, CheckedArithmeticRefusesOverflow) {
  EXPECT_EQ(*checked_mul(1ull << 32, (1ull << 32) - 1), kMax - (1ull << 32) + 1);
  EXPECT_FALSE(checked_mul(1ull << 32, 1ull << 32).ok());
  EXPECT_EQ(*checked_mul(0, kMax), 0u);
  EXPECT_EQ(*checked_add(kMax - 1, 1), kMax);
  EXPECT_FALSE(checked_add(kMax, 1).ok());
}

TEST(Units, RoundingUp) {
  EXPECT_EQ(round_up(0, 32), 0u);
  EXPECT_EQ(round_up(1, 32), 32u);
  EXPECT_EQ(round_up(32, 32), 32u);
  EXPECT_EQ(round_up(33, 24), 48u);
  EXPECT_EQ(ceil_div(10, 5), 2u);
  EXPECT_EQ(ceil_div(11, 5), 3u);
}

}  // namespace
}  // namespace kvasir
