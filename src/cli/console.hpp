// Where a command reads and writes. Results go to `out`, everything else (logs, progress, tables about the run) to `err`.
// Thread rule: one thread at a time.
#pragma once

#include <iosfwd>

namespace kvasir::cli {

struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
};

}  // namespace kvasir::cli
