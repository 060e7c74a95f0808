// The artifact record as a file, and what differs between two.
#include "artifact/record_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "artifact/record_diff.hpp"
#include "tests/support/gguf_writer.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::artifact {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ArtifactRecord sample() {
  ArtifactRecord record;
  record.model_name = "tiny";
  record.architecture = "llama";
  record.engine_revision = "0.1.0";
  record.numeric.parts.add("kv.k.type", "f16").add("position.rope.base", 1e4).add("weights.sha256", sha256({}));
  record.layout.parts.add("block_tokens", std::uint64_t{32});
  record.settings = {{"threads", "2"}};
  record.capacity = {{"weights.embedding", 4096}, {"kv.full", 1ull << 40}};
  return record;
}

std::string text_of(const ArtifactRecord& record) { return record_text(record).value(); }

TEST(RecordJson, IsReadAsItWasWritten) {
  ArtifactRecord record = sample();
  record.layout.undetermined.emplace("engine", "none runs it");
  const std::string text = text_of(record);
  const ArtifactRecord read = parse_record(text, "r.json").value();
  EXPECT_EQ(text_of(read), text);
  EXPECT_EQ(read.numeric.id(), record.numeric.id());
  EXPECT_TRUE(read.numeric.id().has_value());
  EXPECT_FALSE(read.layout.id().has_value());
  EXPECT_TRUE(json::parse(text)["layout"]["id"].is_null()) << "an id of fewer parts would be another id";
  EXPECT_EQ(read.capacity, record.capacity);
}

TEST(RecordJson, KeysStandInByteOrder) {
  const std::string text = text_of(sample());
  EXPECT_EQ(text, nlohmann::json::parse(text).dump(2) + "\n");
  EXPECT_LT(text.find("\"kv.k.type\""), text.find("\"position.rope.base\""));
}

TEST(RecordJson, ANameThatIsNotUtf8IsShownAllTheSame) {
  ArtifactRecord record = sample();
  record.model_name = "tin\xff";
  EXPECT_EQ(parse_record(text_of(record), "r.json")->model_name, "tin\xef\xbf\xbd");
}

TEST(RecordJson, WhatIsWrongIsNamed) {
  const json good = json::parse(text_of(sample()));
  const auto with = [&good](const char* pointer, const json& value) {
    json changed = good;
    changed[json::json_pointer(pointer)] = value;
    return changed.dump();
  };
  const auto without = [&good](const char* key) {
    json changed = good;
    changed.erase(key);
    return changed.dump();
  };
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"GGUF", "r.json: is not valid JSON"},
      {"{}", "'kvasir_record' is missing: this is no artifact record"},
      {with("/kvasir_record", 2), "'kvasir_record' is 2; this program reads version 1"},
      {with("/kvasir_record", "1"), "'kvasir_record' is \"1\"; valid: a whole number"},
      {without("settings"), "'settings' is missing"},
      {with("/extra", 1), "'extra' is not a key of version 1; valid: capacity"},
      {with("/model/path", "/home"), "'model.path' is not a key of version 1; valid: architecture, name"},
      {with("/model/name", 3), "'model.name' is 3; valid: text"},
      {with("/settings/threads", 2), "'settings.threads' is 2; valid: text"},
      {with("/numeric/parts/kv.k.type", "bf16"), "'numeric.id' is \""},
      {with("/numeric/id", nullptr), "'numeric.id' is null; valid, from its parts: \""},
      {with("/numeric/undetermined/mla", "unknown"), "valid, from its parts: null"},
      {with("/numeric/undetermined/kv.k.type", "unknown"), "'numeric.undetermined' names 'kv.k.type', which is among the parts too"},
      {with("/layout/parts/", "1"), "'layout.parts' has a key without a name"},
      {with("/layout/parts", json::array()), "'layout.parts' is []; valid: an object"},
      {with("/capacity", json::object()), "'capacity' is {}; valid: a list"},
      {with("/capacity/0/bytes", -1), "'capacity[0].bytes' is -1; valid: a whole number"},
      {with("/capacity/0/bytes", 4097), "'total_bytes' is 1099511631872; valid, the sum of its lines: 1099511631873"},
      {with("/capacity/0/bytes", ~0ull), "'capacity' adds up wrongly: "},
      {R"({"kvasir_record": 1, "kvasir_record": 1})", "'kvasir_record' is given twice"},
      {std::string(kMaxRecordBytes + 1, ' '), "a record has at most 4194304"},
  };
  for (const auto& one : cases) {
    const auto record = parse_record(one.text, "r.json");
    ASSERT_FALSE(record.ok()) << one.message;
    EXPECT_THAT(record.error().message, HasSubstr(one.message));
    EXPECT_EQ(record.error().code, ErrorCode::bad_input) << one.message;
  }
  json long_list = good;
  long_list["capacity"] = json::array();
  for (std::size_t i = 0; i <= kMaxCapacityLines; ++i) long_list["capacity"].push_back({{"name", "kv"}, {"bytes", 0}});
  EXPECT_THAT(parse_record(long_list.dump(), "r.json").error().message, HasSubstr("has 1025 lines; valid: at most 1024"));
}

TEST(RecordDiff, ToldInThreeClasses) {
  const ArtifactRecord one = sample();
  EXPECT_TRUE(diff_records(one, one).portable);
  EXPECT_TRUE(diff_records(one, one).differences.empty());

  ArtifactRecord other = sample();
  other.settings = {{"isa", "avx2"}};
  other.engine_revision = "0.2.0";
  other.capacity[1].bytes = 1;
  const RecordDiff harmless = diff_records(one, other);
  EXPECT_TRUE(harmless.portable) << harmless.why;
  std::vector<std::string> keys;
  for (const RecordDifference& difference : harmless.differences) {
    keys.push_back(difference.key);
    EXPECT_EQ(difference.kind, DifferenceKind::neither) << difference.key;
  }
  EXPECT_THAT(keys, testing::ElementsAre("capacity.kv.full", "engine_revision", "settings.isa", "settings.threads"));

  other.layout = {};
  other.layout.parts.add("block_tokens", std::uint64_t{64});
  const RecordDiff moved = diff_records(one, other);
  EXPECT_FALSE(moved.portable);
  EXPECT_EQ(moved.differences.front().kind, DifferenceKind::bytes);
  EXPECT_EQ(moved.differences.front().one, "32");
  EXPECT_EQ(moved.differences.front().other, "64");
  EXPECT_THAT(moved.why, HasSubstr("the layout ids differ"));

  other.numeric.parts.add("dropping", "some");
  const RecordDiff changed = diff_records(one, other);
  EXPECT_THAT(changed.why, HasSubstr("the numeric ids differ")) << "bits weigh more than bytes";
  EXPECT_EQ(changed.differences.front().key, "dropping");
  EXPECT_EQ(changed.differences.front().one, std::nullopt);
}

TEST(RecordDiff, WhatIsNotDeterminedIsNotPortable) {
  ArtifactRecord unknown = sample();
  unknown.numeric.undetermined.emplace("tokenizer.sha256", "no file");
  const RecordDiff diff = diff_records(sample(), unknown);
  EXPECT_FALSE(diff.portable);
  EXPECT_EQ(diff.why, "the numeric id of the second is not determined: tokenizer.sha256: no file");
  EXPECT_FALSE(diff_records(unknown, unknown).portable) << "the same ignorance on both sides is no equality";
}

TEST(RecordDiff, LinesOfOneNameAreToldApart) {
  ArtifactRecord one = sample();
  one.capacity = {{"kv.window", 1}, {"kv.window", 2}};
  ArtifactRecord other = one;
  other.capacity[1].bytes = 3;
  const RecordDiff diff = diff_records(one, other);
  ASSERT_EQ(diff.differences.size(), 1u);
  EXPECT_EQ(diff.differences[0].key, "capacity.kv.window#2");
}

TEST(ContentHash, IsTheSameInSteps) {
  const test::TinyModel model = test::make_tiny_model(test::TinyModelSpec::mha());
  std::uint64_t told = 0;
  EXPECT_EQ(content_hash(model.file, [&](std::uint64_t done) { told = done; return true; }), content_hash(model.file));
  EXPECT_EQ(told, model.bytes.size());
  EXPECT_EQ(content_hash(model.file, [](std::uint64_t) { return false; }), std::nullopt);
}

Sha256Digest tokenizer_of(std::int64_t bos, const char* pre, const char* chat_template, bool swapped = false) {
  using std::string_view_literals::operator""sv;
  test::GgufWriter writer;
  writer.value("general.name", std::string_view(chat_template));   // no part of a tokenizer
  if (swapped) writer.value("tokenizer.ggml.pre", std::string_view(pre));
  writer.array<std::string_view>("tokenizer.ggml.tokens", {"a", "bc"}).value("tokenizer.ggml.bos_token_id", bos);
  if (!swapped) writer.value("tokenizer.ggml.pre", std::string_view(pre));
  writer.value("tokenizer.chat_template", std::string_view(chat_template));
  const std::vector<std::byte> bytes = writer.bytes();
  return tokenizer_hash(GgufFile::parse(bytes, "t.gguf").value());
}

TEST(TokenizerHash, IsOfWhatMakesTokens) {
  const Sha256Digest hash = tokenizer_of(1, "smollm", "{{ x }}");
  EXPECT_EQ(tokenizer_of(1, "smollm", "other"), hash) << "a chat template makes texts";
  EXPECT_EQ(tokenizer_of(1, "smollm", "{{ x }}", true), hash) << "whatever the order in the file";
  EXPECT_NE(tokenizer_of(2, "smollm", "{{ x }}"), hash);
  EXPECT_NE(tokenizer_of(1, "gpt-2", "{{ x }}"), hash);
}

}  // namespace
}  // namespace kvasir::artifact
