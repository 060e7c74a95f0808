#include "cli/exit_code.hpp"

#include <ostream>

#include "report/table.hpp"

namespace kvasir::cli {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage: return kExitUsage;
    case ErrorCode::bad_input:
    case ErrorCode::unsupported:
    case ErrorCode::does_not_fit: return kExitBadInput;
    case ErrorCode::exhausted:
    case ErrorCode::io:
    case ErrorCode::cancelled:
    case ErrorCode::internal: return kExitFailure;
  }
  return kExitFailure;
}

int report_error(Console& console, const Error& error) {
  console.err << "kvasir: " << report::printable(error.message) << '\n' << std::flush;
  return exit_code(error.code);
}

}  // namespace kvasir::cli
