// Files that commands write beside what they print.
// Thread rule: one thread.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace kvasir::cli {

// Writes the whole text; folders on the way are made. Errors: io, naming the file.
Status write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace kvasir::cli
