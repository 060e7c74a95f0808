#include "platform/terminal.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "base/check.hpp"

namespace kvasir::platform {
namespace {

// A signal handler can reach nothing but process-wide state; this file is the only one that has any.
std::atomic<int> pending_signal{0};
std::atomic<bool> scope_lives{false};
static_assert(std::atomic<int>::is_always_lock_free, "the handler may only touch lock-free atomics");

struct sigaction old_interrupt, old_terminate;

void on_signal(int signal) {
  if (pending_signal.exchange(signal) != 0) _exit(128 + signal);
}

}  // namespace

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

InterruptScope::InterruptScope() {
  KV_CHECK(!scope_lives.exchange(true), "one InterruptScope at a time");
  pending_signal = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;   // no SA_RESTART: a read that waits for the person must return
  sigaction(SIGINT, &action, &old_interrupt);
  sigaction(SIGTERM, &action, &old_terminate);
}

InterruptScope::~InterruptScope() {
  sigaction(SIGINT, &old_interrupt, nullptr);
  sigaction(SIGTERM, &old_terminate, nullptr);
  scope_lives = false;
}

int InterruptScope::pending() const { return pending_signal; }
void InterruptScope::clear() { pending_signal = 0; }

bool InterruptScope::wait_for_input() const {
  constexpr int kLook_ms = 50;   // a signal between the look and the wait is seen at the next look
  pollfd input{0, POLLIN, 0};
  while (pending() == 0) {
    if (::poll(&input, 1, kLook_ms) > 0) return true;
  }
  return false;
}

}  // namespace kvasir::platform
