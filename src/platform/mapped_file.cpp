#include "platform/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace kvasir::platform {
namespace {

Error system_error(const std::string& path, const char* action) {
  return Error{ErrorCode::io, fmt::format("{}: cannot {}: {}", path, action, std::generic_category().message(errno))};
}

// A file descriptor that closes itself; the mapping outlives it.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Opened without blocking: a named pipe must be refused below, not waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_error(path, "open");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error(path, "inspect");
  if (S_ISDIR(info.st_mode))
    return Error{ErrorCode::bad_input, fmt::format("{}: is a directory; a regular file is needed", path)};
  if (!S_ISREG(info.st_mode))
    return Error{ErrorCode::bad_input, fmt::format("{}: is a device, pipe or socket; a regular file is needed", path)};
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return MappedFile(std::span<const std::byte>());
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return system_error(path, "map");
  return MappedFile(std::span(static_cast<const std::byte*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace kvasir::platform
