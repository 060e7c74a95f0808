// Artifact records: what is planned and what is launched have the same ids, and `record` tells two launches apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string& tiny() {
  static const std::string path = [] {
    std::string made = scratch_path("recorded.gguf");
    write_tiny_model(TinyModelSpec::gqa(), made);
    return made;
  }();
  return path;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

ProgramRun program(Words words, const Words& more, const std::string& environment = {}) {
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words, {.environment = environment});
}

json planned(const Words& options, const std::string& model = tiny()) {
  const ProgramRun run = program({"plan", model}, [&] { Words all = options; all.emplace_back("--record"); return all; }());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out, nullptr, false);
}

// Writes it to a file of this name.
std::string launched(const std::string& name, const Words& options, const std::string& environment = {}) {
  std::string path = scratch_path(name);
  std::filesystem::remove(path);
  const ProgramRun run = program({"run", tiny(), "--prompt", "a", "--max-tokens", "1", "--no-chat-template", "--record", path}, options, environment);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return path;
}

json ids(const json& record) { return {record["numeric"]["id"], record["layout"]["id"]}; }

TEST(Record, OfAPlanIsThatOfTheLaunch) {
  json plan = planned({"--length", "200", "--threads", "2"});
  json run = json::parse(read_file(launched("run.json", {"--max-model-len", "200", "--threads", "2"})));
  EXPECT_TRUE(plan["numeric"]["id"].is_string());
  EXPECT_TRUE(plan["layout"]["id"].is_string());
  run["settings"].erase("isa");   // a plan is of no machine
  EXPECT_EQ(plan, run) << "to the byte: ids, parts, settings, lines of memory";
}

TEST(Record, NumericIdIsOfArithmeticAlone) {
  const json base = json::parse(read_file(launched("base.json", {})));
  const json elsewhere = json::parse(read_file(launched(
      "elsewhere.json", {"--threads", "1", "--max-num-batched-tokens", "64", "--max-model-len", "128", "--kv-cache-memory", "1MiB"}, "KVASIR_ISA=scalar")));
  EXPECT_EQ(ids(base), ids(elsewhere));
  const json blocks = json::parse(read_file(launched("blocks.json", {"--block-size", "64"})));
  EXPECT_EQ(base["numeric"], blocks["numeric"]);
  EXPECT_NE(base["layout"]["id"], blocks["layout"]["id"]);
  const json bf16 = json::parse(read_file(launched("bf16.json", {"--kv-cache-dtype", "bf16"})));
  EXPECT_NE(base["numeric"]["id"], bf16["numeric"]["id"]);
  EXPECT_EQ(base["layout"], bf16["layout"]) << "as wide, in the same places";
  const json f32 = json::parse(read_file(launched("f32.json", {"--compute", "f32"})));
  EXPECT_NE(base["numeric"]["id"], f32["numeric"]["id"]);
  EXPECT_EQ(f32["numeric"]["id"], planned({"--compute", "f32"})["numeric"]["id"]);
}

TEST(Record, HasTheHashOfTheFile) {
  const std::string bytes = read_file(tiny());
  EXPECT_EQ(planned({})["numeric"]["parts"]["weights.sha256"], to_hex(sha256(std::as_bytes(std::span(bytes)))));
  TinyModelSpec other = TinyModelSpec::gqa();
  other.seed = 2;
  const std::string path = scratch_path("other.gguf");
  write_tiny_model(other, path);
  const json one = planned({}), two = planned({}, path);
  EXPECT_NE(one["numeric"]["id"], two["numeric"]["id"]);
  EXPECT_EQ(one["numeric"]["parts"]["tokenizer.sha256"], two["numeric"]["parts"]["tokenizer.sha256"]);
  EXPECT_EQ(one["layout"]["id"], two["layout"]["id"]);
}

TEST(Record, NamesEveryPartOfTheDesign) {
  const json record = planned({});
  for (const char* part : {"weights.sha256", "tokenizer.sha256", "position.rope.base", "position.rope.scaling", "kv.k.type", "kv.v.type", "kv.k.scale",
                           "kv.k.commit_group", "activations.group", "activations.scale", "attention.qk", "attention.softmax", "attention.pv", "mla.form",
                           "dropping", "kernels.revision"}) {
    EXPECT_TRUE(record["numeric"]["parts"].contains(part)) << part;
  }
  for (const char* part : {"k.tile", "v.tile", "groups", "group.0.block_tokens", "group.0.layers", "parallel.tensor", "parallel.pipeline", "parallel.data"})
    EXPECT_TRUE(record["layout"]["parts"].contains(part)) << part;
  EXPECT_THAT(record.dump(), Not(HasSubstr(std::filesystem::path(tiny()).parent_path().string()))) << "no path is told";
}

TEST(Record, WithoutWeightsNoNumericId) {
  for (const char* model : {"llama-3-8b", "deepseek-v3"}) {
    const json record = planned({"--length", "4096"}, model);
    EXPECT_TRUE(record["numeric"]["id"].is_null()) << model;
    EXPECT_THAT(record["numeric"]["undetermined"]["weights.sha256"].get<std::string>(), HasSubstr("no weights"));
    EXPECT_FALSE(record["numeric"]["parts"].contains("weights.sha256"));
  }
  EXPECT_TRUE(planned({}, "llama-3-8b")["layout"]["id"].is_string());
  EXPECT_TRUE(planned({}, "deepseek-v3")["layout"]["id"].is_null()) << "no engine here lays latents out";
  const json mixed = planned({"--kv-cache-dtype-skip-layers", "0", "--kv-cache-dtype", "bf16"});
  EXPECT_TRUE(mixed["numeric"]["id"].is_null());
  EXPECT_EQ(mixed["layout"]["undetermined"]["engine"], "layers of another format can be planned, not stored");
  const json planned_only = planned({"--kv-cache-dtype", "int8"});
  EXPECT_TRUE(planned_only["numeric"]["id"].is_null());
  EXPECT_EQ(planned_only["layout"]["undetermined"]["engine"], "a cache of int8 can be planned, not stored");
}

TEST(Record, OptionsThatMakeNoSenseAreNamed) {
  const std::string text = scratch_path("text.txt");
  std::ofstream(text) << "dear diary";
  const struct {
    Words words;
    int code;
    const char* message;
  } cases[] = {
      {{"plan", tiny(), "--set", "kv_heads=4", "--record"}, 2, "--record: with --set kv_heads=4"},
      {{"plan", tiny(), "--tensor-parallel-size", "2", "--record"}, 2, "--record: a layout over several devices can be planned, not launched"},
      {{"plan", tiny(), "--json", "--record"}, 2, "valid: --record FILE --json"},
      {{"plan", "--record", text, tiny()}, 2, "exists and is no artifact record"},
      {{"plan", tiny(), "--record", "/nowhere/r.json"}, 1, "--record: '/nowhere/r.json' cannot be written"},
      {{"plan", tiny(), "--compute", "fp8", "--record"}, 2, "'fp8' is not offered; valid: int8, f32"},
      {{"run", tiny(), "--record", "-"}, 2, "'-' is no file"},
      {{"run", tiny(), "--tensor-parallel-size", "2"}, 2, "--tensor-parallel-size: '2' is not offered; valid: 1 (the engine runs on one device)"},
      {{"serve", tiny(), "--tensor-parallel-size", "8"}, 2, "--tensor-parallel-size: '8' is not offered; valid: 1"},
      {{"record"}, 2, "valid: record show FILE, record diff FILE FILE"},
      {{"record", "show"}, 2, "FILE is required"},
      {{"record", "show", "/nowhere/r.json"}, 4, "'/nowhere/r.json' does not exist"},
      {{"record", "show", text}, 4, "is not valid JSON"},
      {{"record", "diff", tiny(), tiny()}, 4, "recorded.gguf"},
  };
  for (const auto& one : cases) {
    const ProgramRun run = run_program(one.words);
    EXPECT_EQ(run.exit_code, one.code) << run.err << run.out;
    EXPECT_THAT(run.err, HasSubstr(one.message));
  }
  EXPECT_EQ(read_file(text), "dear diary");
}

TEST(Record, AConfigurationThatWantsTwoDevicesIsRefused) {
  const std::string path = scratch_path("tp.yaml");
  std::ofstream(path) << "tensor-parallel-size: 2\n";
  const ProgramRun run = run_program({"run", tiny(), "--config", path, "--prompt", "a"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--tensor-parallel-size: '2' is not offered"));
}

TEST(Record, DiffTellsWhetherKvIsPortable) {
  const std::string one = launched("one.json", {}), same = launched("same.json", {"--threads", "1"});
  const std::string blocks = launched("wide.json", {"--block-size", "64"}), bits = launched("bits.json", {"--kv-cache-dtype", "f32"});
  const ProgramRun portable = run_program({"record", "diff", one, same});
  EXPECT_EQ(portable.exit_code, 0) << portable.err;
  EXPECT_THAT(portable.out, AllOf(HasSubstr("settings.threads"), HasSubstr("KV is portable between them: numeric and layout id are equal.")));
  const ProgramRun moved = run_program({"record", "diff", one, blocks, "--json"});
  EXPECT_EQ(moved.exit_code, 3);
  const json told = json::parse(moved.out);
  EXPECT_EQ(told["portable"], false);
  EXPECT_EQ(told["differences"][0]["changes"], "bytes");
  const ProgramRun changed = run_program({"record", "diff", one, bits});
  EXPECT_EQ(changed.exit_code, 3);
  EXPECT_THAT(changed.out, AllOf(HasSubstr("bits"), HasSubstr("kv.k.type"), HasSubstr("f16"), HasSubstr("KV is not portable between them: the numeric ids differ")));
}

TEST(Record, ShowsWhatItHolds) {
  const std::string path = launched("shown.json", {});
  const ProgramRun table = run_program({"record", "show", path});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  const json record = json::parse(read_file(path));
  EXPECT_THAT(table.out, AllOf(HasSubstr(record["numeric"]["id"].get<std::string>()), HasSubstr(record["layout"]["id"].get<std::string>()),
                               HasSubstr("kernels.revision"), HasSubstr("total")));
  EXPECT_EQ(json::parse(run_program({"record", "show", path, "--json"}).out), record);
}

}  // namespace
}  // namespace kvasir::test
