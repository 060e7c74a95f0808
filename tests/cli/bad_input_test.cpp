// Whatever a person gets wrong: the exit code of the contract, and a message that names what is wrong and what is valid.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::test {
namespace {

const std::string& good_model() {
  static const std::string path = [] {
    std::string made = scratch_path("good.gguf");
    write_tiny_model(TinyModelSpec::gqa(), made);
    return made;
  }();
  return path;
}

// The good model with every `word` replaced by another of equal length.
std::string edited_model(const std::string& name, const std::string& word, const std::string& by) {
  const std::vector<std::byte> bytes = tiny_model_bytes(TinyModelSpec::gqa());
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;) text.replace(at, word.size(), by);
  std::string made = scratch_path(name);
  std::ofstream(made, std::ios::binary) << text;
  return made;
}

// An architecture without a forward pass.
const std::string& mamba_model() {
  static const std::string path = edited_model("mamba.gguf", "llama", "mamba");
  return path;
}

// A base model: no chat template.
const std::string& base_model() {
  static const std::string path = edited_model("base.gguf", "tokenizer.chat_template", "tokenizer.some_template");
  return path;
}

const std::string& text_file() {
  static const std::string path = [] {
    std::string made = scratch_path("words.txt");
    std::ofstream(made) << "These are words, not a model.\n";
    return made;
  }();
  return path;
}

struct BadInput {
  std::string name;
  std::vector<std::string> arguments;   // GOOD, MAMBA, BASE, TEXT and FOLDER stand for paths
  int exit_code;
  std::vector<std::string> says;        // all of these, on stderr
  ProgramInput input = {};
};

std::string with_paths(std::string argument) {
  const std::pair<std::string, std::string> names[] = {
      {"GOOD", good_model()}, {"MAMBA", mamba_model()}, {"BASE", base_model()}, {"TEXT", text_file()}, {"FOLDER", std::filesystem::temp_directory_path()}};
  for (const auto& [name, path] : names) {
    if (const std::size_t at = argument.find(name); at != std::string::npos) argument.replace(at, name.size(), path);
  }
  return argument;
}

class BadInputTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, IsExplained) {
  std::vector<std::string> arguments;
  for (const std::string& argument : GetParam().arguments) arguments.push_back(with_paths(argument));
  const ProgramRun run = run_program(arguments, GetParam().input);
  EXPECT_EQ(run.exit_code, GetParam().exit_code) << run.err;
  EXPECT_EQ(run.out, "");
  for (const std::string& text : GetParam().says) {
    EXPECT_NE(run.err.find(text), std::string::npos) << "stderr lacks \"" << text << "\":\n" << run.err;
  }
}

const std::string kLongPrompt(100, 'x');

INSTANTIATE_TEST_SUITE_P(
    Table, BadInputTest,
    testing::Values(
        BadInput{"MissingFile", {"run", "no/such.gguf", "--prompt", "hi"}, 4, {"'no/such.gguf' does not exist"}},
        BadInput{"Directory", {"run", "FOLDER", "--prompt", "hi"}, 4, {"is a directory"}},
        BadInput{"NotAModel", {"inspect", "TEXT"}, 4, {"words.txt", "GGUF"}},
        BadInput{"WrongArchitecture", {"run", "MAMBA", "--prompt", "hi", "--no-chat-template"}, 4, {"mamba", "llama", "qwen2"}},
        BadInput{"PromptLongerThanContext",
                 {"run", "GOOD", "--no-chat-template", "--max-model-len", "48", "--prompt", kLongPrompt}, 4, {"100", "48"}},
        BadInput{"CacheTooSmallForOneSequence",
                 {"run", "GOOD", "--no-chat-template", "--prompt", "hi", "--max-tokens", "500", "--kv-cache-memory", "32K"}, 4, {"block"}},
        BadInput{"CacheBelowOneBlock", {"run", "GOOD", "--no-chat-template", "--prompt", "hi", "--kv-cache-memory", "1K"}, 4, {"1024"}},
        BadInput{"EmptyPrompt", {"run", "GOOD", "--no-chat-template", "--prompt", ""}, 4, {"prompt is empty", "--prompt"}},
        BadInput{"EmptyStdin", {"run", "GOOD", "--no-chat-template"}, 4, {"prompt is empty", "stdin"}},
        BadInput{"InvalidUtf8", {"run", "GOOD", "--no-chat-template", "--prompt", "ab\xff"}, 4, {"UTF-8", "2"}},
        BadInput{"InvalidUtf8OnStdin", {"tokenize", "GOOD", "--ids"}, 4, {"UTF-8"}, {.stdin_text = "\xc3("}},
        BadInput{"NoChatTemplate", {"run", "BASE", "--prompt", "hi"}, 4, {"no chat template", "--no-chat-template"}},
        BadInput{"MissingTextFile", {"perplexity", "GOOD", "no/such.txt"}, 4, {"'no/such.txt' does not exist"}},
        BadInput{"UnknownFlag", {"run", "GOOD", "--thread", "2"}, 2, {"unknown option '--thread'", "did you mean '--threads'"}},
        BadInput{"UnknownFlagWithoutModel", {"run", "--tmperature=1"}, 2, {"'--tmperature'", "did you mean '--temperature'"}},
        BadInput{"UnknownCommand", {"inspekt", "GOOD"}, 2, {"unknown command 'inspekt'", "did you mean 'inspect'", "perplexity"}},
        BadInput{"NoCommand", {}, 2, {"inspect", "tokenize", "run", "perplexity", "bench"}},
        BadInput{"MissingModel", {"inspect"}, 2, {"MODEL", "required"}},
        BadInput{"TooManyArguments", {"inspect", "GOOD", "GOOD"}, 2, {"unexpected argument"}},
        BadInput{"ThreadsOutOfRange", {"run", "GOOD", "--threads", "0"}, 2, {"--threads", "'0'", "1 to"}},
        BadInput{"MoreThreadsThanMakeSense", {"run", "GOOD", "--threads", "100000"}, 2, {"--threads", "'100000'", "1 to"}},
        BadInput{"EmptyValueIsNotTheNextWord", {"run", "GOOD", "--no-chat-template", "--prompt=", "--max-tokens", "2"}, 4, {"prompt is empty"}},
        BadInput{"EmptyValueInTheEnvironment", {"run", "GOOD", "--no-chat-template"}, 4, {"prompt is empty"}, {.environment = "KVASIR_PROMPT="}},
        BadInput{"EmptyTextFile", {"perplexity", "GOOD", "/dev/null"}, 4, {"token"}},
        BadInput{"EndlessTextFile", {"perplexity", "GOOD", "/dev/zero"}, 4, {"'/dev/zero' has more than", "256"}},
        BadInput{"ConfigIsADirectory", {"run", "GOOD", "--config", "FOLDER"}, 2, {"--config", "is a directory"}},
        BadInput{"KeyFileWithoutAKey", {"serve", "GOOD", "--port", "0", "--api-key-file", "/dev/null"}, 4, {"/dev/null", "no key is in it"}},
        BadInput{"KeyFileWithoutAName", {"serve", "GOOD", "--port", "0", "--api-key-file", ""}, 2, {"--api-key-file", "empty"}},
        BadInput{"StreamIntervalOfNothing", {"serve", "GOOD", "--port", "0", "--stream-interval", "0"}, 2, {"--stream-interval", "'0'", "1 to 256"}},
        BadInput{"StreamIntervalInTheEnvironment", {"serve", "GOOD", "--port", "0"}, 2, {"--stream-interval", "'257'", "1 to 256"}, {.environment = "KVASIR_STREAM_INTERVAL=257"}},
        BadInput{"ThreadsNotANumber", {"run", "GOOD", "--threads", "two"}, 2, {"--threads", "'two'", "whole number"}},
        BadInput{"TemperatureOutOfRange", {"run", "GOOD", "--temperature", "nan"}, 2, {"--temperature", "'nan'", "0 to 100"}},
        BadInput{"NoBeams", {"run", "GOOD", "--beams", "0"}, 2, {"--beams", "'0'", "1 to 64"}},
        BadInput{"LengthPenaltyWithoutBeams", {"run", "GOOD", "--length-penalty", "2"}, 2, {"--length-penalty", "--beams"}},
        BadInput{"BeamsThatAreDrawn", {"run", "GOOD", "--no-chat-template", "--prompt", "x", "--beams", "2", "--temperature", "1"}, 4, {"beam search", "temperature 0"}},
        BadInput{"CacheTypeNotOffered", {"run", "GOOD", "--kv-cache-dtype", "int8"}, 2, {"--kv-cache-dtype", "'int8'", "f32, f16, bf16"}},
        BadInput{"CacheMemoryWithoutUnit", {"run", "GOOD", "--kv-cache-memory", "2X"}, 2, {"--kv-cache-memory", "'2X'", "512MiB"}},
        BadInput{"BlockSize", {"run", "GOOD", "--block-size", "48"}, 2, {"--block-size", "'48'", "16, 32, 64"}},
        BadInput{"GivenTwice", {"run", "GOOD", "--threads", "1", "--threads", "2"}, 2, {"--threads"}},
        BadInput{"OptionInModelArgument", {"run", "GOOD --block-siz 32", "--prompt", "x"}, 2, {"'--block-siz'", "did you mean '--block-size'"}},
        BadInput{"OptionInBothPlaces", {"run", "GOOD --threads 1", "--threads", "2", "--prompt", "x"}, 2, {"--threads"}},
        BadInput{"BenchCase", {"bench", "GOOD", "--cases", "1x8,3y4"}, 2, {"'3y4'", "1x512,8x128"}},
        BadInput{"UnknownInstructionClass", {"run", "GOOD", "--prompt", "x"}, 2, {"sse9", "scalar"}, {.environment = "KVASIR_ISA=sse9"}}),
    [](const testing::TestParamInfo<BadInput>& entry) { return entry.param.name; });

}  // namespace
}  // namespace kvasir::test
