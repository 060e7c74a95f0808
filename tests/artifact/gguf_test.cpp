#include "artifact/gguf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>

#include "tests/support/gguf_writer.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::artifact {
namespace {

using std::string_view_literals::operator""sv;
using test::GgufWriter;
using testing::HasSubstr;

// A parsed file with the bytes it stands on.
struct Parsed {
  std::vector<std::byte> bytes;
  GgufFile file;
};

Parsed parse(const GgufWriter& writer) {
  std::vector<std::byte> bytes = writer.bytes();
  auto file = GgufFile::parse(bytes, "test.gguf");
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
  return {std::move(bytes), std::move(file).value()};
}

std::filesystem::path scratch(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / ("kvasir_gguf_" + name);
}

TEST(Gguf, EveryScalarKindIsRead) {
  GgufWriter writer;
  writer.value("u8", std::uint8_t{255}).value("i8", std::int8_t{-128}).value("u16", std::uint16_t{65535});
  writer.value("i16", std::int16_t{-32768}).value("u32", std::uint32_t{4294967295}).value("i32", std::int32_t{-7});
  writer.value("u64", std::numeric_limits<std::uint64_t>::max()).value("i64", std::numeric_limits<std::int64_t>::min());
  writer.value("f32", 0.1f).value("f64", 0.1).value("yes", true).value("no", false).value("text", "caf\u00e9"sv);
  const Parsed parsed = parse(writer);
  const GgufFile& file = parsed.file;
  EXPECT_EQ(*file.get_uint("u8"), 255u);
  EXPECT_EQ(std::get<std::int64_t>(*file.find("i8")), -128);
  EXPECT_EQ(*file.get_uint("u16"), 65535u);
  EXPECT_EQ(std::get<std::int64_t>(*file.find("i16")), -32768);
  EXPECT_EQ(*file.get_uint("u32"), 4294967295u);
  EXPECT_EQ(std::get<std::int64_t>(*file.find("i32")), -7);
  EXPECT_EQ(*file.get_uint("u64"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(std::get<std::int64_t>(*file.find("i64")), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(*file.get_float("f32"), double{0.1f});
  EXPECT_EQ(*file.get_float("f64"), 0.1);
  EXPECT_EQ(*file.get_float("i32"), -7.0);
  EXPECT_TRUE(*file.get_bool("yes"));
  EXPECT_FALSE(*file.get_bool("no"));
  EXPECT_EQ(*file.get_string("text"), "caf\u00e9");
  EXPECT_EQ(file.metadata().size(), 13u);
  EXPECT_EQ(file.metadata()[4].first, "u32") << "metadata stays in file order";
}

TEST(Gguf, EveryArrayKindIsRead) {
  GgufWriter writer;
  writer.array<std::uint8_t>("u8", {0, 255}).array<std::int8_t>("i8", {-128, 127});
  writer.array<std::uint16_t>("u16", {65535}).array<std::int16_t>("i16", {-32768});
  writer.array<std::uint32_t>("u32", {4294967295}).array<std::int32_t>("i32", {-1, 0, 1});
  writer.array<std::uint64_t>("u64", {1ull << 62}).array<std::int64_t>("i64", {-(1ll << 62)});
  writer.array<float>("f32", {0.1f, -2}).array<double>("f64", {0.1}).array<bool>("bool", {true, false});
  writer.array<std::string_view>("text", {"a", "", "bc"}).array<std::string_view>("none", {});
  const Parsed parsed = parse(writer);
  const auto ints = [&](std::string_view key) {
    const auto span = *parsed.file.get_ints(key);
    return std::vector<std::int64_t>(span.begin(), span.end());
  };
  EXPECT_EQ(ints("u8"), (std::vector<std::int64_t>{0, 255}));
  EXPECT_EQ(ints("i8"), (std::vector<std::int64_t>{-128, 127}));
  EXPECT_EQ(ints("u16"), (std::vector<std::int64_t>{65535}));
  EXPECT_EQ(ints("i16"), (std::vector<std::int64_t>{-32768}));
  EXPECT_EQ(ints("u32"), (std::vector<std::int64_t>{4294967295}));
  EXPECT_EQ(ints("i32"), (std::vector<std::int64_t>{-1, 0, 1}));
  EXPECT_EQ(ints("u64"), (std::vector<std::int64_t>{1ll << 62}));
  EXPECT_EQ(ints("i64"), (std::vector<std::int64_t>{-(1ll << 62)}));
  EXPECT_EQ(ints("bool"), (std::vector<std::int64_t>{1, 0}));
  EXPECT_THAT(*parsed.file.get_floats("f32"), testing::ElementsAre(double{0.1f}, -2.0));
  EXPECT_THAT(*parsed.file.get_floats("f64"), testing::ElementsAre(0.1));
  EXPECT_THAT(*parsed.file.get_strings("text"), testing::ElementsAre("a", "", "bc"));
  EXPECT_EQ(parsed.file.get_strings("none")->size(), 0u);
}

TEST(Gguf, TypedAccessNamesFileKeyKindAndWhatIsValid) {
  GgufWriter writer;
  writer.value("text", "x"sv).value("minus", std::int32_t{-3}).array<float>("floats", {1});
  const Parsed parsed = parse(writer);
  const auto message = [](const auto& result) { return result.ok() ? "no error" : result.error().message; };
  EXPECT_EQ(message(parsed.file.get_uint("text")),
            "test.gguf: metadata key 'text' holds a string; a non-negative integer is valid");
  EXPECT_EQ(message(parsed.file.get_uint("minus")),
            "test.gguf: metadata key 'minus' is -3; a non-negative integer is valid");
  EXPECT_EQ(message(parsed.file.get_string("floats")),
            "test.gguf: metadata key 'floats' holds an array of floats; a string is valid");
  EXPECT_EQ(message(parsed.file.get_ints("floats")),
            "test.gguf: metadata key 'floats' holds an array of floats; an array of integers is valid");
  EXPECT_EQ(message(parsed.file.get_bool("absent")), "test.gguf: metadata key 'absent' is missing");
  EXPECT_EQ(parsed.file.get_floats("minus").error().code, ErrorCode::bad_input);
  EXPECT_EQ(parsed.file.find("absent"), nullptr);
}

TEST(Gguf, TensorsHaveTheirBytesInBothVersionsAtAnyAlignment) {
  const std::vector<std::byte> q4_0(3 * 18, std::byte{7}), f32(20, std::byte{9});
  for (const std::uint32_t version : {2u, 3u}) {
    for (const std::uint32_t alignment : {8u, 24u, 32u, 64u, 4096u}) {
      GgufWriter writer;
      writer.version(version).alignment(alignment);
      writer.tensor("first", TensorType::q4_0, {32, 3}, q4_0).tensor("second", TensorType::f32, {5, 1, 1, 1}, f32);
      const Parsed parsed = parse(writer);
      EXPECT_EQ(parsed.file.version(), version);
      ASSERT_EQ(parsed.file.tensors().size(), 2u);
      const GgufTensor* second = parsed.file.find_tensor("second");
      ASSERT_EQ(second, &parsed.file.tensors()[1]);
      EXPECT_EQ(second->dims, (std::vector<std::uint64_t>{5, 1, 1, 1}));
      EXPECT_TRUE(std::ranges::equal(second->bytes, f32));
      EXPECT_TRUE(std::ranges::equal(parsed.file.tensors()[0].bytes, q4_0));
      EXPECT_EQ((second->bytes.data() - parsed.bytes.data()) % alignment, 0);
      EXPECT_EQ(parsed.file.find_tensor("third"), nullptr);
    }
  }
}

TEST(Gguf, AFileOfMetadataAloneOpens) {
  const Parsed parsed = parse(GgufWriter().value("general.architecture", "llama"sv));
  EXPECT_TRUE(parsed.file.tensors().empty());
  const Parsed empty = parse(GgufWriter());
  EXPECT_TRUE(empty.file.metadata().empty());
}

TEST(Gguf, OpenMapsTheFileAndSurvivesMoves) {
  const std::string path = scratch("open.gguf").string();
  test::write_tiny_model(test::TinyModelSpec::gqa(), path);
  auto opened = GgufFile::open(path);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const std::string_view architecture = *opened->get_string("general.architecture");
  GgufFile moved = std::move(opened).value();
  EXPECT_EQ(architecture, "llama") << "views outlive a move";
  EXPECT_EQ(moved.name(), path);
  EXPECT_EQ(moved.file_bytes(), std::filesystem::file_size(path));
  const test::TinyModel memory = test::make_tiny_model(test::TinyModelSpec::gqa());
  EXPECT_TRUE(std::ranges::equal(moved.tensors().back().bytes, memory.file.tensors().back().bytes));
  std::filesystem::remove(path);
  EXPECT_TRUE(std::ranges::equal(moved.tensors().back().bytes, memory.file.tensors().back().bytes)) << "still mapped";
}

TEST(Gguf, PathsThatAreNoFilesAreRefused) {
  const auto missing = GgufFile::open("/nonexistent/model.gguf");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::io);
  EXPECT_THAT(missing.error().message, testing::AllOf(HasSubstr("/nonexistent/model.gguf"), HasSubstr("No such file")));
  const auto folder = GgufFile::open(testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::bad_input);
  EXPECT_THAT(folder.error().message, HasSubstr("is a directory"));
  EXPECT_EQ(GgufFile::open("/dev/null").error().code, ErrorCode::bad_input);
  const std::string path = scratch("empty.gguf").string();
  test::write_file(path, {});
  const auto empty = GgufFile::open(path);
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.error().message, HasSubstr("truncated"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace kvasir::artifact
