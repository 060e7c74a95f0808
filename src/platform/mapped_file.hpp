// A whole file mapped read-only into memory. Pages are read when touched, so mapping costs nothing whatever the size.
// Thread rule: immutable after open(); any thread.
// Invariant: bytes() stays valid and at the same address until the object that holds the mapping is destroyed; moving the object
// does not move the bytes. A file that another process cuts short while it is mapped kills the reader (SIGBUS), as with
// every mapped file: model files are replaced by rename, never rewritten in place.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.hpp"

namespace kvasir::platform {

class MappedFile {
 public:
  // Errors: io if the file is missing or unreadable, bad_input if the path is not a regular file. An empty file maps
  // to an empty span.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;  // empty: nothing is mapped
};

}  // namespace kvasir::platform
