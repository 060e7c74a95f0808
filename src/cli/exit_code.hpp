// Exit codes of the program: a contract that scripts rely on.
// Pure functions, any thread.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"
#include "cli/console.hpp"

namespace kvasir::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;      // something failed at run time
inline constexpr int kExitUsage = 2;        // unknown command or option, a value out of range
inline constexpr int kExitNo = 3;           // a gate failed, or a plan does not fit: the answer is no
inline constexpr int kExitBadInput = 4;     // a file, prompt or size that cannot be used
inline constexpr int kExitSignal = 128;     // plus the signal's number: 130 for Ctrl-C, 143 for SIGTERM

// does_not_fit is bad input here (a prompt longer than the context, a cache too small for one sequence); `plan`, whose
// answer it is, says kExitNo itself.
int exit_code(ErrorCode code);

inline Error usage_error(std::string message) { return Error{ErrorCode::usage, std::move(message)}; }

// "kvasir: <message>" to err, and the exit code of the error.
int report_error(Console& console, const Error& error);

}  // namespace kvasir::cli
