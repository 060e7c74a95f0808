// Files that lie, are cut short or ask for what is not offered: each is refused with a message that names the file, the
// key or tensor, the value and what would be valid, at once and in little memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <limits>

#include "artifact/geometry.hpp"
#include "artifact/gguf.hpp"
#include "tests/support/gguf_writer.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::artifact {
namespace {

using std::string_view_literals::operator""sv;
using test::ByteSink;
using test::GgufWriter;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr auto kF32 = static_cast<std::uint32_t>(TensorType::f32);

struct Lie {
  std::string name;
  std::vector<std::byte> bytes;
  ErrorCode code = ErrorCode::bad_input;
  std::vector<std::string> says;   // parts of the message
};

void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

Lie lie(std::string name, const GgufWriter& writer, std::vector<std::string> says, ErrorCode code = ErrorCode::bad_input) {
  return {std::move(name), writer.bytes(), code, std::move(says)};
}

// One tensor of the given dimensions and offset that has no data.
Lie lying_tensor(std::string name, std::vector<std::uint64_t> dims, std::uint64_t offset, std::vector<std::string> says,
                 std::uint32_t type = kF32, ErrorCode code = ErrorCode::bad_input) {
  GgufWriter writer;
  writer.raw_tensor("w", type, std::move(dims), offset);
  says.emplace_back("tensor 'w'");
  return lie(std::move(name), writer, std::move(says), code);
}

std::vector<std::byte> array_header(std::uint32_t type, std::uint64_t count) {
  return ByteSink().put(type).put(count).bytes();
}

std::vector<Lie> preamble_lies() {
  std::vector<Lie> lies;
  std::vector<std::byte> not_gguf = GgufWriter().bytes();
  not_gguf[0] = std::byte{0x01};
  lies.push_back({"WrongMagic", not_gguf, ErrorCode::bad_input, {"\\x01GUF", "starts with 'GGUF'"}});
  lies.push_back(lie("VersionOne", GgufWriter().version(1), {"version 1", "2 and 3"}, ErrorCode::unsupported));
  lies.push_back(lie("VersionFour", GgufWriter().version(4), {"version 4", "2 and 3"}, ErrorCode::unsupported));
  lies.push_back(lie("BigEndian", GgufWriter().version(3u << 24), {"big endian"}, ErrorCode::unsupported));
  lies.push_back(lie("HugePairs", GgufWriter().claim_pairs(kHuge), {"1152921504606846976 metadata pairs", "at most 65536"}));
  lies.push_back(lie("HugeTensors", GgufWriter().claim_tensors(kHuge), {"1152921504606846976 tensors", "at most 65536"}));
  lies.push_back(lie("MorePairsThanBytes", GgufWriter().claim_pairs(60000), {"60000 metadata pairs", "truncated"}));
  lies.push_back(lie("MoreTensorsThanBytes", GgufWriter().claim_tensors(60000), {"60000 tensors", "truncated"}));
  lies.push_back(lie("OneTensorTooMany", GgufWriter().value("k", 1u).raw_tensor("w", kF32, {1}, 0).claim_tensors(2), {"tensor 1"}));
  return lies;
}

std::vector<Lie> metadata_lies() {
  const std::string key = "metadata key 'k'";
  std::vector<Lie> lies;
  const auto raw = [&](std::string name, std::uint32_t type, const std::vector<std::byte>& bytes, std::vector<std::string> says) {
    says.push_back(key);
    lies.push_back(lie(std::move(name), GgufWriter().raw_value("k", type, bytes), std::move(says)));
  };
  raw("StringOfAllBytes", 8, ByteSink().put(kMax).bytes(), {"18446744073709551615 bytes", "truncated"});
  raw("UnknownValueType", 13, {}, {"type 13 is unknown", "0 to 12"});
  raw("BoolOfTwo", 7, ByteSink().put(std::uint8_t{2}).bytes(), {"stored as 2", "0 and 1"});
  raw("ArrayOfBoolOfTwo", 9, ByteSink().put(7u).put(std::uint64_t{1}).put(std::uint8_t{2}).bytes(), {"stored as 2"});
  raw("ArrayOfUnknownTypeHugeCount", 9, array_header(99, kHuge), {"element type 99 is unknown"});
  raw("NestedArray", 9, array_header(9, 1), {"array of arrays"});
  raw("HugeArray", 9, array_header(4, kHuge), {"1152921504606846976 elements", "at most 16777216"});
  raw("LargestArrayWithoutBytes", 9, array_header(0, kMaxArrayElements), {"16777216 elements", "truncated"});
  raw("LargestStringArrayWithoutBytes", 9, array_header(8, kMaxArrayElements), {"16777216 elements", "truncated"});
  raw("StringInArrayOfAllBytes", 9, ByteSink().put(8u).put(std::uint64_t{1}).put(kMax).bytes(), {"18446744073709551615 bytes"});
  raw("ArrayElementAboveInt64", 9, ByteSink().put(10u).put(std::uint64_t{1}).put(kMax).bytes(), {"element 0", "2^63 - 1"});
  lies.push_back(lie("EmptyKey", GgufWriter().value("", 1u), {"metadata pair 0", "the key is empty"}));
  lies.push_back(lie("LongKey", GgufWriter().value(std::string(65536, 'k'), 1u), {"the key has 65536 bytes", "1 to 65535"}));
  lies.push_back(lie("DuplicateKey", GgufWriter().value("k", 1u).value("k", 2u), {key, "occurs twice"}));
  return lies;
}

std::vector<Lie> known_key_lies() {
  const std::string alignment = "metadata key 'general.alignment'", split = "metadata key 'split.count'";
  std::vector<Lie> lies;
  for (const std::uint32_t wrong : {0u, 3u, 4u, 12u, 1u << 21, 1u << 31})
    lies.push_back(lie("Alignment" + std::to_string(wrong), GgufWriter().value("general.alignment", wrong),
                       {alignment, "is " + std::to_string(wrong), "multiples of 8"}));
  lies.push_back(lie("AlignmentOfText", GgufWriter().value("general.alignment", "32"sv), {alignment, "a string", "integer"}));
  lies.push_back(lie("AlignmentNegative", GgufWriter().value("general.alignment", std::int32_t{-8}), {alignment, "signed integer"}));
  lies.push_back(lie("AlignmentOfArray", GgufWriter().array<std::uint32_t>("general.alignment", {32}), {alignment, "array"}));
  lies.push_back(lie("Split", GgufWriter().value("split.count", std::uint16_t{3}), {split, "3 files", "merge"}, ErrorCode::unsupported));
  lies.push_back(lie("SplitOfFloat", GgufWriter().value("split.count", 2.0f), {split, "a float", "integer"}));
  return lies;
}

std::vector<Lie> tensor_lies() {
  std::vector<Lie> lies;
  const std::uint64_t int64_max = kMax >> 1;
  lies.push_back(lying_tensor("DimsWrapToSmall", {int64_max, 2}, 0, {"9223372036854775807, 2"}));
  lies.push_back(lying_tensor("DimsOverflow", {std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 0, {"64 bits"}));
  lies.push_back(lying_tensor("DimsWrapToZero", {std::uint64_t{1} << 32, std::uint64_t{1} << 31, 4}, 0, {"64 bits"}));
  lies.push_back(lying_tensor("BytesOverflow", {std::uint64_t{1} << 62}, 0, {"64 bits"}));
  lies.push_back(lying_tensor("LargeDim", {(std::uint64_t{1} << 42) + 1}, 0, {"17592186044420 bytes", "truncated"}));
  lies.push_back(lying_tensor("ZeroDim", {0}, 0, {"[0] is 0", "at least 1"}));
  lies.push_back(lying_tensor("ZeroSecondDim", {32, 0}, 0, {"[32, 0] is 0"}));
  lies.push_back(lying_tensor("NoDims", {}, 0, {"0 dimensions", "1 to 4"}));
  lies.push_back(lying_tensor("FiveDims", {1, 1, 1, 1, 1}, 0, {"5 dimensions", "1 to 4"}));
  lies.push_back(lying_tensor("HalfABlock", {33, 1}, 0, {"rows of 33", "Q4_0", "multiple of 32"}, 2));
  lies.push_back(lying_tensor("UnknownTensorType", {1}, 0, {"4096 is unknown"}, 4096, ErrorCode::unsupported));
  lies.push_back(lying_tensor("TypeNotOffered", {32}, 0, {"IQ3_S is not offered", "Q4_K"}, 21, ErrorCode::unsupported));
  lies.push_back(lying_tensor("OffsetPastEnd", {1}, 1 << 20, {"offset 1048576", "truncated"}));
  lies.push_back(lying_tensor("OffsetWraps", {8}, kMax - 31, {"offset 18446744073709551584", "truncated"}));
  lies.push_back(lying_tensor("OffsetUnaligned", {1}, 4, {"offset is 4", "multiples of the alignment 32"}));
  const std::vector<std::byte> data(128);
  const auto two = [&](std::string_view second, std::uint64_t offset) {
    return GgufWriter().tensor("first", TensorType::f32, {32}, data).raw_tensor(second, kF32, {1}, offset);
  };
  lies.push_back(lie("Overlap", two("second", 96), {"tensor 'second'", "offset 96", "inside tensor 'first'"}));
  lies.push_back(lie("SameBytes", two("second", 0), {"overlap"}));
  lies.push_back(lie("DuplicateTensor", two("first", 128), {"tensor 'first'", "occurs twice"}));
  lies.push_back(lie("EmptyTensorName", GgufWriter().raw_tensor("", kF32, {1}, 0), {"tensor 0", "0 bytes", "1 to 64"}));
  lies.push_back(lie("LongTensorName", GgufWriter().raw_tensor(std::string(65, 't'), kF32, {1}, 0), {"65 bytes", "1 to 64"}));
  lies.push_back(lie("NameWithControlBytes", GgufWriter().raw_tensor("a\n\x1b[31m", kF32, {}, 0), {"tensor 'a\\x0a\\x1b[31m'"}));
  return lies;
}

std::vector<Lie> all_lies() {
  std::vector<Lie> all;
  for (std::vector<Lie>& some : std::array{preamble_lies(), metadata_lies(), known_key_lies(), tensor_lies()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

class GgufRefusal : public testing::TestWithParam<Lie> {};

TEST_P(GgufRefusal, NamesTheFaultAtOnceAndInLittleMemory) {
  const Lie& lie = GetParam();
  const long before = peak_kib();
  const auto start = std::chrono::steady_clock::now();
  const auto file = GgufFile::parse(lie.bytes, "lie.gguf");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_LT(peak_kib() - before, 8 * 1024);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, lie.code) << file.error().message;
  EXPECT_THAT(file.error().message, testing::StartsWith("lie.gguf: "));
  for (const std::string& part : lie.says) EXPECT_THAT(file.error().message, testing::HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(All, GgufRefusal, testing::ValuesIn(all_lies()), [](const auto& instance) { return instance.param.name; });

TEST(GgufPrefix, EveryPrefixOfAValidFileIsRefused) {
  GgufWriter writer;
  writer.value("general.architecture", "llama"sv).value("flag", true).value("number", 1.5).array<std::int16_t>("ints", {1, 2, 3});
  writer.array<std::string_view>("words", {"one", "", "three"}).alignment(64);
  const std::vector<std::byte> data(72, std::byte{1});
  writer.tensor("a", TensorType::q4_0, {32, 4}, data).tensor("b", TensorType::f32, {3, 2, 3}, data);
  const std::vector<std::byte> whole = writer.bytes();
  ASSERT_TRUE(GgufFile::parse(whole, "whole.gguf").ok());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto file = GgufFile::parse(prefix, "prefix.gguf");
    ASSERT_FALSE(file.ok()) << size << " of " << whole.size() << " bytes";
    EXPECT_EQ(file.error().code, ErrorCode::bad_input);
    EXPECT_THAT(file.error().message, testing::HasSubstr("truncated"));
  }
}

// Flipping any byte of a header either changes a harmless value or is refused: it never crashes, hangs or reads wildly
// (the sanitizer builds would say so), and whatever still opens has its tensors inside the file.
TEST(GgufMutation, AnyChangedByteIsReadOrRefused) {
  const test::TinyModel model = test::make_tiny_model(test::TinyModelSpec::gqa());
  const auto header = static_cast<std::size_t>(model.file.tensors()[0].bytes.data() - model.bytes.data());
  std::vector<std::byte> bytes(model.bytes.begin(), model.bytes.end());
  std::size_t opened = 0, refused = 0;
  for (std::size_t at = 0; at < header; at += at < 1200 ? 1 : 7) {
    for (const std::byte mask : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
      bytes[at] ^= mask;
      if (const auto file = GgufFile::parse(bytes, "mutant.gguf"); file.ok()) {
        ++opened;
        for (const GgufTensor& tensor : file->tensors())
          ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), bytes.data() + bytes.size());
        (void)ModelGeometry::from_gguf(*file);
      } else {
        ++refused;
        ASSERT_FALSE(file.error().message.empty());
      }
      bytes[at] ^= mask;
    }
  }
  EXPECT_GT(opened, 100u);
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace kvasir::artifact
