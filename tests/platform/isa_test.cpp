#include "platform/isa.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir::platform {
namespace {

using ::testing::HasSubstr;

TEST(Isa, NamesGoBothWays) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) EXPECT_EQ(parse_isa(to_string(isa)), isa);
  EXPECT_EQ(parse_isa("AVX2"), std::nullopt);
  EXPECT_EQ(parse_isa(""), std::nullopt);
}

TEST(Isa, EveryMachineHasTheScalarClassAndClassesContainEachOther) {
  const std::vector<Isa> found = available_isas();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), Isa::scalar);
  EXPECT_TRUE(!has_isa(Isa::avx512) || has_isa(Isa::avx2));
  for (const Isa isa : found) EXPECT_TRUE(has_isa(isa));
}

TEST(Isa, ChoosesTheBestUnlessForced) {
  EXPECT_EQ(choose_isa(nullptr).value(), available_isas().back());
  EXPECT_EQ(choose_isa("").value(), available_isas().back());
  EXPECT_EQ(choose_isa("scalar").value(), Isa::scalar);
}

TEST(Isa, UnknownClassIsAnErrorThatListsWhatThereIs) {
  const Result<Isa> unknown = choose_isa("sse9");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::usage);
  EXPECT_THAT(unknown.error().message, HasSubstr("KVASIR_ISA=sse9"));
  for (const Isa isa : available_isas()) EXPECT_THAT(unknown.error().message, HasSubstr(std::string(to_string(isa))));
}

}  // namespace
}  // namespace kvasir::platform
