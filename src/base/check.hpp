// Checks for programmer errors. On in every build type; a failed check prints what was expected and aborts.
// Never reachable from user input or from the operating system: those get a Result (base/result.hpp).
// Thread rule: any thread.
#pragma once

#include <string_view>

namespace kvasir {

// Prints "file:line: check failed: <expression>: <message>" to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* expression, std::string_view message);

}  // namespace kvasir

// KV_CHECK(condition, "what must hold"): the message says the rule that was broken, not the expression again.
#define KV_CHECK(condition, message)                                              \
  do {                                                                            \
    if (!(condition)) [[unlikely]]                                                \
      ::kvasir::check_failed(__FILE__, __LINE__, #condition, (message));          \
  } while (false)
