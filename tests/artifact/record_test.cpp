#include "artifact/record.hpp"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.hpp"

namespace kvasir::artifact {
namespace {

using std::string_view_literals::operator""sv;

TEST(IdParts, TheOrderOfAddingDoesNotShow) {
  IdParts one, other;
  one.add("weights", "abc").add("block", std::uint64_t{32}).add("base", 1e4);
  other.add("base", 1e4).add("weights", "abc").add("block", std::uint64_t{32});
  EXPECT_EQ(one.id(), other.id());
  EXPECT_EQ(one.parts().at("block"), "32");
}

// A change of form would make every stored block a stranger: it must be meant, and then the tag changes too.
TEST(IdParts, TheCanonicalFormIsFixed) {
  std::string form("kvasir-id-1\0", 12);
  form += "\1\0\0\0\0\0\0\0a\2\0\0\0\0\0\0\0xy\2\0\0\0\0\0\0\0bc\0\0\0\0\0\0\0\0"sv;
  IdParts parts;
  parts.add("bc", "").add("a", "xy");
  EXPECT_EQ(to_hex(parts.id()), to_hex(sha256(std::as_bytes(std::span(form)))));
}

TEST(IdParts, EveryPartAndEveryBoundaryCounts) {
  const auto id = [](std::string_view key, std::string_view value) { return IdParts().add(key, value).id(); };
  EXPECT_NE(id("a", "bc"), id("ab", "c")) << "where the key ends";
  EXPECT_NE(id("a", "b"), id("a", "b\0"sv));
  EXPECT_NE(IdParts().id(), id("a", ""));
  EXPECT_NE(IdParts().add("a", "x").add("b", "").id(), IdParts().add("a", "").add("b", "x").id());
  EXPECT_NE(IdParts().add("eps", 1e-5).id(), IdParts().add("eps", 1.0000000000000002e-5).id()) << "doubles count exactly";
}

TEST(IdPartsDeathTest, APartIsNamedAndAddedOnce) {
  EXPECT_DEATH(IdParts().add("a", "1").add("a", "1"), "added once: a");
  EXPECT_DEATH(IdParts().add("", "1"), "has a name");
}

TEST(ContentHash, IsOfEveryByte) {
  const test::TinyModel model = test::make_tiny_model(test::TinyModelSpec::mha());
  EXPECT_EQ(content_hash(model.file), sha256(model.bytes));
  std::vector<std::byte> changed(model.bytes.begin(), model.bytes.end());
  changed.back() ^= std::byte{1};
  const auto file = GgufFile::parse(changed, "changed.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_NE(content_hash(*file), content_hash(model.file));
}

}  // namespace
}  // namespace kvasir::artifact
