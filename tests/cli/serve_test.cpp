// `kvasir serve` as a program: the ready line, the printed curl command, signals and exit codes, refused options.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::test {
namespace {

std::string tiny_path() {
  const std::string path = scratch_path("serve-tiny.gguf");
  write_tiny_model(TinyModelSpec::gqa(), path);
  return path;
}

// A program in the background whose stderr is read line by line.
class Running {
 public:
  explicit Running(const std::string& options, const std::string& size = "--kv-cache-memory 4MiB --threads 1") {
    const std::string command = "echo $$; exec " + program_path() + " serve " + tiny_path() + " --port 0 " + size + " " + options;
    pipe_ = ::popen(("exec 2>&1; " + command).c_str(), "r");
    pid_ = std::atoi(line().c_str());
  }
  ~Running() {
    if (pipe_ != nullptr) ::pclose(pipe_);
  }
  std::string line() {
    char* text = nullptr;
    std::size_t size = 0;
    std::string out;
    if (::getline(&text, &size, pipe_) > 0) out = text;
    std::free(text);
    return out;
  }
  // The rest of the line after `words`.
  std::string line_with(const std::string& words) {
    for (std::string next = line(); !next.empty(); next = line()) {
      if (const std::size_t at = next.find(words); at != std::string::npos) {
        return next.substr(at + words.size(), next.find('\n') - at - words.size());
      }
    }
    return "";
  }
  void signal(int number) const { ::kill(pid_, number); }
  int wait() {
    while (!line().empty()) {
    }
    const int status = ::pclose(pipe_);
    pipe_ = nullptr;
    return WEXITSTATUS(status);
  }

 private:
  std::FILE* pipe_ = nullptr;
  int pid_ = 0;
};

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  char piece[4096];
  while (const std::size_t count = std::fread(piece, 1, sizeof piece, pipe)) out.append(piece, count);
  ::pclose(pipe);
  return out;
}

TEST(Serve, ThePrintedCurlLineWorks) {
  Running server("");
  EXPECT_TRUE(server.line_with("ready on ").starts_with("http://127.0.0.1:"));
  const std::string curl = server.line_with("try  ");
  ASSERT_TRUE(curl.starts_with("curl http://127.0.0.1:"));
  const std::string answer = output_of(curl + " -s");
  EXPECT_NE(answer.find("\"object\":\"chat.completion\""), std::string::npos) << answer;
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 143);
}

TEST(Serve, AnInterruptEndsIt) {
  Running server("");
  server.line_with("ready on ");
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 130);
}

TEST(Serve, AKeyOfTheEnvironmentIsAskedFor) {
  ::setenv("KVASIR_API_KEY", "a-secret-key", 1);
  Running server("--log-format json");
  ::unsetenv("KVASIR_API_KEY");
  std::string url = server.line_with("ready on ");
  url.resize(url.find(' '));
  EXPECT_NE(output_of("curl -s " + url + "/v1/models").find("invalid_api_key"), std::string::npos);
  EXPECT_NE(output_of("curl -s -H 'Authorization: Bearer a-secret-key' " + url + "/v1/models").find("serve-tiny"),
            std::string::npos);
  EXPECT_NE(output_of("curl -s " + url + "/health").find("ok"), std::string::npos);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 143);
}

TEST(Serve, ItsRecordHasTheIdsOfThePlan) {
  const std::string path = scratch_path("served.json");
  Running server("--record " + path);
  std::string url = server.line_with("ready on ");
  url.resize(url.find(' '));
  const auto served = nlohmann::json::parse(output_of("curl -s --retry 20 " + url + "/kv/record"), nullptr, false);
  const auto planned = nlohmann::json::parse(run_program({"plan", tiny_path(), "--record"}).out, nullptr, false);
  EXPECT_TRUE(served["numeric"]["id"].is_string()) << served;
  EXPECT_EQ(served["numeric"], planned["numeric"]);
  EXPECT_EQ(served["layout"], planned["layout"]);
  EXPECT_EQ(served.dump().find(scratch_path("")), std::string::npos) << "no path is told";
  std::ifstream file(path);
  EXPECT_EQ(nlohmann::json::parse(file, nullptr, false), served) << "--record has the same";
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 143);
}

// What --launch says to paste is what was planned, line by line.
TEST(Serve, ItsMemoryIsThatOfThePlanItWasLaunchedFrom) {
  const std::string record = scratch_path("launched-record.json");
  const std::vector<std::string> plan = {"plan", tiny_path(), "--requests", "3", "--length", "100", "--threads", "2"};
  std::vector<std::string> told = plan, recorded = plan;
  told.emplace_back("--launch");
  recorded.emplace_back("--record");
  const std::string text = run_program(told).out, start = "kvasir serve " + tiny_path() + " ";
  const std::size_t at = text.find(start);
  ASSERT_NE(at, std::string::npos) << text;
  const std::string options = text.substr(at + start.size(), text.find('\n', at) - at - start.size());
  Running server("--record " + record, options);
  EXPECT_EQ(server.line_with("info record made="), "true") << options;
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 143);
  nlohmann::json served = nlohmann::json::parse(std::ifstream(record), nullptr, false);
  ASSERT_TRUE(served.is_object());
  served["settings"].erase("isa");   // a plan is of no machine
  EXPECT_EQ(served, nlohmann::json::parse(run_program(recorded).out, nullptr, false));
}

TEST(Serve, BadOptionsAndFilesAreRefusedBeforeAnything) {
  const std::string model = tiny_path();
  EXPECT_EQ(run_program({"serve", model, "--port", "99999"}).exit_code, 2);
  const ProgramRun host = run_program({"serve", model, "--host", "no such host"});
  EXPECT_EQ(host.exit_code, 2);
  EXPECT_NE(host.err.find("host"), std::string::npos) << host.err;
  EXPECT_EQ(run_program({"serve", model, "--protect", "metrics"}).exit_code, 2);
  EXPECT_EQ(run_program({"serve", model + ".missing", "--port", "0"}).exit_code, 4);
  EXPECT_EQ(run_program({"serve", model, "--port", "0", "--api-key-file", "/nonexistent"}).exit_code, 1);
}

}  // namespace
}  // namespace kvasir::test
