// A chat as a person has it: the program on a pseudo-terminal, typed to and read from.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::test {
namespace {

constexpr int kPatienceMs = 60'000;   // a busy machine; nothing waits this long when all is well

class Terminal {
 public:
  explicit Terminal(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program_path());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    child_ = forkpty(&master_, nullptr, nullptr, nullptr);
    if (child_ == 0) {
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Terminal() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys) { ASSERT_EQ(write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size())); }

  // Reads until `text` has appeared behind what was waited for before. False if it did not, or the program ended.
  bool wait_for(const std::string& text) {
    while (true) {
      if (const std::size_t at = screen_.find(text, seen_); at != std::string::npos) {
        seen_ = at + text.size();
        return true;
      }
      if (!read_some()) return false;
    }
  }

  // The exit code, once the program has ended; 128 + number after a signal.
  int wait_for_end() {
    while (read_some()) {
    }
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  const std::string& screen() const { return screen_; }

 private:
  bool read_some() {
    pollfd readable{master_, POLLIN, 0};
    if (poll(&readable, 1, kPatienceMs) <= 0) return false;
    char buffer[4096];
    const ssize_t count = read(master_, buffer, sizeof buffer);   // fails once the other side is closed
    if (count <= 0) return false;
    screen_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  pid_t child_ = -1;
  int master_ = -1;
  std::string screen_;
  std::size_t seen_ = 0;
};

std::vector<std::string> chat_with(std::uint32_t context, std::vector<std::string> more) {
  TinyModelSpec spec = TinyModelSpec::gqa();
  spec.context = context;
  const std::string path = scratch_path(fmt::format("chat-{}.gguf", context));
  write_tiny_model(spec, path);
  std::vector<std::string> arguments = {"run", path, "--ignore-eos"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Chat, AnswersWithHistoryAndQuits) {
  Terminal terminal(chat_with(2048, {"--max-tokens", "8"}));
  ASSERT_TRUE(terminal.wait_for("weights")) << terminal.screen();   // the memory table
  ASSERT_TRUE(terminal.wait_for("\n> ")) << terminal.screen();
  terminal.type("hello\n");
  ASSERT_TRUE(terminal.wait_for("[8 tokens (length)")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("\n> "));
  terminal.type("again\n");
  ASSERT_TRUE(terminal.wait_for("[8 tokens (length)")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("\n> "));
  terminal.type("/quit\n");
  EXPECT_EQ(terminal.wait_for_end(), 0) << terminal.screen();
}

TEST(Chat, EndOfInputEndsIt) {
  Terminal terminal(chat_with(2048, {}));
  ASSERT_TRUE(terminal.wait_for("\n> ")) << terminal.screen();
  terminal.type("\x04");   // Ctrl-D
  EXPECT_EQ(terminal.wait_for_end(), 0) << terminal.screen();
}

TEST(Chat, InterruptEndsTheAnswerThenTheProgram) {
  Terminal terminal(chat_with(1u << 17, {"--max-tokens", "100000"}));
  ASSERT_TRUE(terminal.wait_for("\n> ")) << terminal.screen();
  terminal.type("hello\n");
  ASSERT_TRUE(terminal.wait_for("hello\r\n"));    // the echo
  ASSERT_TRUE(terminal.wait_for("\xEF\xBF\xBD"))  // a random model soon says something that is no text
      << terminal.screen();
  terminal.type("\x03");   // Ctrl-C
  ASSERT_TRUE(terminal.wait_for("tokens (cancelled)")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("\n> "));
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait_for_end(), 130) << terminal.screen();
}

TEST(Chat, AMessageThatDoesNotFitIsTakenBack) {
  Terminal terminal(chat_with(2048, {"--max-tokens", "4", "--max-model-len", "64"}));
  ASSERT_TRUE(terminal.wait_for("\n> ")) << terminal.screen();
  terminal.type(std::string(100, 'x') + "\n");
  ASSERT_TRUE(terminal.wait_for("kvasir: ")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for("\n> "));
  terminal.type("hi\n");
  EXPECT_TRUE(terminal.wait_for("[4 tokens (length)")) << terminal.screen();
}

}  // namespace
}  // namespace kvasir::test
