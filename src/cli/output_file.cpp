#include "cli/output_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

namespace kvasir::cli {

Status write_file(const std::filesystem::path& path, const std::string& text) {
  std::error_code ignored;   // writing says what is wrong
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))   // a pipe would wait for ever
    return Error{ErrorCode::io, fmt::format("'{}' is no regular file", path.string())};
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) return Error{ErrorCode::io, fmt::format("cannot write '{}'", path.string())};
  return ok_status();
}

}  // namespace kvasir::cli
