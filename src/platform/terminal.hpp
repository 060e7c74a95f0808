// What a command line tool asks the operating system about the person in front of it.
// Thread rule: is_terminal is pure; at most one InterruptScope lives at a time.
#pragma once

namespace kvasir::platform {

// Whether file descriptor 0, 1 or 2 is a terminal.
bool is_terminal(int descriptor);

// While it lives, SIGINT (Ctrl-C) and SIGTERM set a flag instead of ending the process, and interrupt a blocked read; a
// second one before clear() ends the process at once with 128 + its number. The old handlers come back afterwards.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // The signal that came since the start or the last clear(); 0 = none.
  // Waits until standard input, a terminal, has a line or has ended. False: a signal came first, whichever thread got it.
  bool wait_for_input() const;
  int pending() const;
  void clear();
};

}  // namespace kvasir::platform
