// The commands as scripts use them: keys, exit codes, and that the same request gives the same answer however it is put.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/gguf_writer.hpp"
#include "tests/support/tiny_model.hpp"
#include "tests/support/tiny_vocabulary.hpp"

namespace kvasir::test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

const std::string& tiny_model() {
  static const std::string path = [] {
    std::string made = scratch_path("tiny.gguf");
    write_tiny_model(TinyModelSpec::gqa(), made);
    return made;
  }();
  return path;
}

// Long enough to be interrupted.
const std::string& endless_model() {
  static const std::string path = [] {
    TinyModelSpec spec = TinyModelSpec::mqa();
    spec.context = 1u << 17;
    std::string made = scratch_path("endless.gguf");
    write_tiny_model(spec, made);
    return made;
  }();
  return path;
}

const std::string& vocabulary_file() {
  static const std::string path = [] {
    const TinyVocabulary vocabulary = tiny_vocabulary(300);
    GgufWriter writer;
    writer.value("general.architecture", std::string_view("llama"));
    writer.value("tokenizer.ggml.model", std::string_view("gpt2"));
    writer.value("tokenizer.ggml.pre", std::string_view("smollm"));
    writer.array("tokenizer.ggml.tokens", std::vector<std::string_view>(vocabulary.tokens.begin(), vocabulary.tokens.end()));
    writer.array("tokenizer.ggml.token_type", vocabulary.types);
    writer.array("tokenizer.ggml.merges", std::vector<std::string_view>(vocabulary.merges.begin(), vocabulary.merges.end()));
    std::string made = scratch_path("vocabulary.gguf");
    write_file(made, writer.bytes());
    return made;
  }();
  return path;
}

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

// The one JSON object of a run that must succeed.
Json run_json(std::vector<std::string> arguments, const ProgramInput& input = {}) {
  arguments.push_back("--json");
  const ProgramRun run = run_program(arguments, input);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  Json parsed = Json::parse(run.out, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << run.out;
  return parsed;
}

const std::vector<std::string> kAnswer = {"run", tiny_model(), "--no-chat-template", "--prompt", "once upon a time", "--max-tokens", "12", "--ignore-eos"};

std::vector<std::string> answer_with(std::vector<std::string> more) {
  std::vector<std::string> arguments = kAnswer;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Output, ThatCannotBeWrittenIsAFailure) {
  const std::string run = program_path() + " --version > /dev/full 2>/dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(run.c_str())), 1);
}

TEST(RunCommand, JsonHasTheKeysOfTheContract) {
  const Json answer = run_json(answer_with({"--logprobs", "3"}));
  EXPECT_THAT(keys(answer), testing::ElementsAre("text", "token_ids", "logprobs", "finish_reason", "usage", "timings", "memory", "effective"));
  for (const char* key : {"isa", "threads", "block_tokens", "max_num_batched_tokens", "kv_cache_dtype", "steps"}) {
    EXPECT_TRUE(answer["effective"].contains(key)) << key;
  }
  EXPECT_EQ(answer["token_ids"].size(), 12u);
  EXPECT_EQ(answer["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 12);
  ASSERT_EQ(answer["logprobs"].size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(answer["logprobs"][i]["token_id"], answer["token_ids"][i]);
    ASSERT_EQ(answer["logprobs"][i]["top"].size(), 3u);
    EXPECT_EQ(answer["logprobs"][i]["top"][0]["token_id"], answer["token_ids"][i]) << "greedy takes the likeliest";
    EXPECT_LT(answer["logprobs"][i]["logprob"], 0);
  }
}

// The answer of a search is its best sequence: no less likely than the likeliest token each time.
TEST(RunCommand, BeamsFindAnAnswerThatIsNoLessLikely) {
  const auto sum = [](const Json& answer) {
    double total = 0;
    for (const Json& token : answer["logprobs"]) total += token["logprob"].get<double>();
    return total;
  };
  const Json greedy = run_json(answer_with({"--logprobs", "0"}));
  const Json one = run_json(answer_with({"--logprobs", "0", "--beams", "1"}));
  const Json eight = run_json(answer_with({"--logprobs", "0", "--beams", "8", "--length-penalty", "0"}));
  EXPECT_EQ(one["token_ids"], greedy["token_ids"]);
  EXPECT_EQ(eight["token_ids"].size(), 12u);
  EXPECT_GE(sum(eight), sum(greedy) - 1e-4);
}

// Every line within 2 %, and `overhead` bytes for the ends of allocations (large ones are whole pages): they show where a
// whole model is a few kilobytes.
void expect_lines_agree(const Json& memory, double overhead) {
  std::vector<std::string> names;
  for (const Json& line : memory["lines"]) {
    names.push_back(line["name"]);
    const double computed = line["computed_bytes"].get<double>();
    const bool allocated = names.back() == "weights" || names.back() == "workspace" || names.back() == "metadata";
    EXPECT_NEAR(line["real_bytes"].get<double>(), computed, 0.02 * computed + (allocated ? overhead : 0)) << line["name"];
  }
  EXPECT_THAT(names, testing::ElementsAre("weights", "cache", "workspace", "metadata", "slack"));
}

TEST(RunCommand, MemoryTableAgreesWithWhatIsAllocated) {
  const Json answer = run_json(kAnswer);
  expect_lines_agree(answer["memory"], 12 * 4096.0);
  EXPECT_GT(answer["memory"]["runtime_bytes"], 0);
}

// Lean: beside the packed weights and the cache's committed bytes the process holds less than 60 MB.
TEST(RunCommand, SmolLm2IsLean) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "an instrumented build shadows all its memory";
#endif
  const std::string model = KVASIR_SOURCE_DIR "/models/SmolLM2-135M-Instruct-Q4_1.gguf";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << model << " is not here (scripts/fetch-model smollm2)";
  const Json memory = run_json({"run", model, "--prompt", "Name three rivers.", "--max-tokens", "8", "--kv-cache-memory", "64MiB"})["memory"];
  expect_lines_agree(memory, 0);
  std::uint64_t weights_and_cache = 0;
  for (const Json& line : memory["lines"])
    if (line["name"] == "weights" || line["name"] == "cache") weights_and_cache += line["real_bytes"].get<std::uint64_t>();
  EXPECT_LT(memory["resident_bytes"].get<std::uint64_t>(), weights_and_cache + 60'000'000);
}

TEST(RunCommand, TextGoesToStdoutAndTheSummaryToStderr) {
  const ProgramRun run = run_program(kAnswer);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, run_json(kAnswer)["text"].get<std::string>() + "\n");
  EXPECT_THAT(run.err, HasSubstr("12 tokens (length)"));
  EXPECT_THAT(run.err, HasSubstr("tok/s"));
}

TEST(RunCommand, OptionsInTheModelArgumentMeanTheSame) {
  const Json apart = run_json(answer_with({"--block-size", "64", "--kv-cache-dtype", "f32", "--threads", "1"}));
  std::vector<std::string> arguments = kAnswer;
  arguments[1] += " --block-size 64 --kv-cache-dtype f32 --threads 1";
  const Json together = run_json(arguments);
  EXPECT_EQ(together["effective"], apart["effective"]);
  EXPECT_EQ(together["effective"]["block_tokens"], 64);
  EXPECT_EQ(together["effective"]["kv_cache_dtype"], "f32");
  EXPECT_EQ(together["token_ids"], apart["token_ids"]);
}

TEST(RunCommand, TheChatTemplateIsUsedUnlessTurnedOff) {
  const std::vector<std::string> arguments = {"run", tiny_model(), "--prompt", "hi", "--max-tokens", "1"};
  std::vector<std::string> plain = arguments;
  plain.push_back("--no-chat-template");
  const int chat_tokens = run_json(arguments)["usage"]["prompt_tokens"], plain_tokens = run_json(plain)["usage"]["prompt_tokens"];
  EXPECT_EQ(plain_tokens, 2);
  EXPECT_GT(chat_tokens, plain_tokens);
}

TEST(RunCommand, StdinIsThePromptLessOneNewline) {
  std::vector<std::string> arguments = {"run", tiny_model(), "--no-chat-template", "--max-tokens", "12", "--ignore-eos"};
  const Json answer = run_json(arguments, {.stdin_text = "once upon a time\n"});
  EXPECT_EQ(answer["token_ids"], run_json(kAnswer)["token_ids"]);
}

TEST(RunCommand, AnswersDoNotDependOnThreadsChunksBlocksOrClass) {
  const Json token_ids = run_json(kAnswer)["token_ids"];
  EXPECT_EQ(run_json(answer_with({"--threads", "1", "--block-size", "16"}))["token_ids"], token_ids);
  EXPECT_EQ(run_json(answer_with({"--max-num-batched-tokens", "3"}))["token_ids"], token_ids);
  const Json scalar = run_json(kAnswer, {.environment = "KVASIR_ISA=scalar"});
  EXPECT_EQ(scalar["effective"]["isa"], "scalar");
  EXPECT_EQ(scalar["token_ids"], token_ids);
}

TEST(RunCommand, SeedDecidesADraw) {
  const auto draw = [](const char* seed) { return run_json(answer_with({"--temperature", "1.5", "--seed", seed}))["token_ids"]; };
  EXPECT_EQ(draw("1"), draw("1"));
  EXPECT_NE(draw("1"), draw("2"));
}

TEST(RunCommand, InterruptEndsTheAnswerCleanly) {
  const ProgramRun run = run_program({"run", endless_model(), "--no-chat-template", "--prompt", "x", "--max-tokens", "100000", "--ignore-eos"},
                                     {.interrupt_at_output = true});
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_GT(run.out.size(), 1u);
  EXPECT_EQ(run.out.back(), '\n');
  EXPECT_THAT(run.err, HasSubstr("tokens (cancelled)"));
}

TEST(TokenizeCommand, EmptyTextHasNoIds) {
  const ProgramRun run = run_program({"tokenize", tiny_model(), "--ids"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "\n");
}

TEST(TokenizeCommand, StdinIsTakenByteForByte) {
  const std::string text = "a\r\n  b\tc \n";
  const Json ids = run_json({"tokenize", tiny_model()}, {.stdin_text = text});
  std::string joined;
  for (const Json& piece : ids["pieces"]) joined += piece;
  EXPECT_EQ(joined, text);
  EXPECT_EQ(run_json({"tokenize", tiny_model(), "--text", text}), ids);
}

TEST(TokenizeCommand, SpecialTextIsTextUnlessAskedFor) {
  EXPECT_EQ(run_program({"tokenize", tiny_model(), "--ids", "--special", "--text", "<|im_end|>"}).out, std::to_string(kTinyImEnd) + "\n");
  const Json ids = run_json({"tokenize", tiny_model(), "--text", "<|im_end|>"})["ids"];
  EXPECT_GT(ids.size(), 1u);
  EXPECT_THAT(ids, testing::Not(testing::Contains(Json(kTinyImEnd))));
}

TEST(TokenizeCommand, AVocabularyAloneIsEnough) {
  EXPECT_EQ(run_json({"tokenize", vocabulary_file(), "--text", "hello"})["ids"], run_json({"tokenize", tiny_model(), "--text", "hello"})["ids"]);
  EXPECT_EQ(run_json({"inspect", vocabulary_file()})["tokenizer"]["entries"], 300);
}

TEST(InspectCommand, DescribesTheModel) {
  const Json model = run_json({"inspect", tiny_model()});
  const TinyModelSpec spec = TinyModelSpec::gqa();
  EXPECT_EQ(model["architecture"], spec.architecture);
  EXPECT_EQ(model["layers"], spec.layers);
  EXPECT_EQ(model["heads"], spec.heads);
  EXPECT_EQ(model["kv_heads"], spec.kv_heads);
  EXPECT_EQ(model["head_dim"], spec.head_dim);
  EXPECT_EQ(model["vocabulary"], spec.vocabulary);
  EXPECT_EQ(model["runs"], true);
  std::uint64_t bytes = 0;
  for (const Json& type : model["tensor_types"]) bytes += type["bytes"].get<std::uint64_t>();
  EXPECT_EQ(bytes, model["weight_bytes"]);
  EXPECT_EQ(model["metadata"]["general.architecture"], spec.architecture);
  const ProgramRun table = run_program({"inspect", tiny_model(), "--metadata"});
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_THAT(table.out, HasSubstr("4 query, 2 key-value, 16 wide"));
  EXPECT_THAT(table.out, HasSubstr("tokenizer.ggml.tokens"));
}

TEST(PerplexityCommand, ScoresTheSecondHalfOfEachWindow) {
  const std::string text = scratch_path("text.txt");
  std::ofstream(text) << std::string(600, 'a') << " and then some more words to make it less dull.\n";
  const Json result = run_json({"perplexity", tiny_model(), text, "--context", "32", "--windows", "5"});
  EXPECT_EQ(result["windows"], 5);
  EXPECT_EQ(result["tokens"], 5 * (32 - 16 - 1));
  EXPECT_GT(result["perplexity"], 1);
}

TEST(BenchCommand, PrintsALineACaseWithThePeersKeys) {
  const ProgramRun run = run_program({"bench", tiny_model(), "--cases", "1x16,3x8", "--repeat", "1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::size_t newline = run.out.find('\n');
  const Json first = Json::parse(run.out.substr(0, newline)), second = Json::parse(run.out.substr(newline));
  EXPECT_EQ(first["sequences"], 1);
  EXPECT_EQ(second["sequences"], 3);
  EXPECT_EQ(second["prompt"], 8);
  for (const Json& line : {first, second}) {
    EXPECT_GT(line["prefill_tok_s"], 0);
    EXPECT_GT(line["decode_tok_s"], 0);
  }
}

TEST(BenchCommand, WithoutTheCacheCountsGrowAsTheClosedFormsSay) {
  const Json line = run_json({"bench", tiny_model(), "--no-kv-cache", "--lengths", "20", "--max-num-batched-tokens", "32"});
  EXPECT_EQ(line["cached"]["rows"], 20);
  EXPECT_EQ(line["cached"]["pairs"], 210);
  EXPECT_EQ(line["uncached"]["rows"], 210);
  EXPECT_EQ(line["uncached"]["pairs"], 1540);
  EXPECT_EQ(line["closed_form"]["uncached"]["pairs"], 1540);
}

TEST(Help, EveryCommandExplainsItself) {
  const ProgramRun root = run_program({"--help"});
  EXPECT_EQ(root.exit_code, 0);
  for (const char* command : {"inspect", "tokenize", "run", "perplexity", "bench"}) {
    EXPECT_THAT(root.out, HasSubstr(command));
    const ProgramRun help = run_program({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr("MODEL"));
    EXPECT_EQ(help.err, "");
  }
  EXPECT_THAT(run_program({"--version"}).out, testing::StartsWith("kvasir "));
}

}  // namespace
}  // namespace kvasir::test
