#include "platform/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/units.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; Debian 12's headers have it, older ones do not
#endif

namespace kvasir::platform {
namespace {

std::string last_error() { return std::strerror(errno); }

std::optional<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// The number at the start of `text` after blanks; none for "max" or anything else.
std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The value of the line "KEY value" or "KEY: value".
std::optional<std::uint64_t> field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(key) && line.size() > key.size() && (line[key.size()] == ':' || line[key.size()] == ' '))
      return leading_number(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

// The line "HIERARCHY:CONTROLLERS:PATH" of /proc/self/cgroup whose controllers are `controllers`; empty = version 2.
std::optional<std::string> cgroup_path(std::string_view text, std::string_view controllers) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    if (line.substr(first + 1, second - first - 1) == controllers) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

struct CgroupFiles {
  const char* controllers;  // as in /proc/self/cgroup
  const char* mount;        // below the root
  const char *limit, *usage;
  const char* reclaimable;  // key in memory.stat: file pages that the kernel drops before it refuses
};
constexpr CgroupFiles kVersion2{"", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr CgroupFiles kVersion1{"memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file"};

// What one cgroup folder has left; none if it has no limit.
std::optional<std::uint64_t> left_in(const std::filesystem::path& folder, const CgroupFiles& files) {
  const std::optional<std::string> limit_text = read_text(folder / files.limit);
  const std::optional<std::string> usage_text = read_text(folder / files.usage);
  if (!limit_text || !usage_text) return std::nullopt;
  const std::optional<std::uint64_t> limit = leading_number(*limit_text), usage = leading_number(*usage_text);
  if (!limit || !usage) return std::nullopt;
  const std::uint64_t reclaimable =
      field(read_text(folder / "memory.stat").value_or(""), files.reclaimable).value_or(0);
  const std::uint64_t held = *usage - std::min(*usage, reclaimable);
  return *limit - std::min(*limit, held);
}

// The tightest of a cgroup and its parents. In a container the path may be the host's and not exist below the mount:
// the walk then meets the mount itself, which is the container's own cgroup.
std::optional<std::uint64_t> cgroup_available(const std::filesystem::path& root, std::string_view membership,
                                              const CgroupFiles& files) {
  const std::optional<std::string> path = cgroup_path(membership, files.controllers);
  if (!path) return std::nullopt;
  const std::filesystem::path mount = root / files.mount;
  std::optional<std::uint64_t> tightest;
  for (std::filesystem::path at = std::filesystem::path(*path).relative_path();; at = at.parent_path()) {
    if (const auto left = left_in(mount / at, files)) tightest = std::min(tightest.value_or(*left), *left);
    if (at.empty()) return tightest;
  }
}

}  // namespace

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

Result<AddressRange> AddressRange::reserve(std::size_t bytes, std::size_t alignment) {
  KV_CHECK(bytes > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0, "a size, and a power of two");
  const std::size_t align = std::max(alignment, page_bytes());
  constexpr std::size_t kMaxBytes = std::size_t{1} << 47;  // the user half of the address space
  if (bytes > kMaxBytes || align > kMaxBytes)
    return Error{ErrorCode::does_not_fit, fmt::format("{} of address space asked for; at most {} exist",
                                                      format_bytes(bytes), format_bytes(kMaxBytes))};
  const std::size_t size = round_up(bytes, page_bytes());
  const std::size_t mapped = size + align;
  void* raw = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return Error{ErrorCode::does_not_fit, fmt::format("{} of address space: {}", format_bytes(bytes), last_error())};
  auto* const base = static_cast<std::byte*>(raw);
  void* fit = raw;
  std::size_t space = mapped;
  std::align(align, size, fit, space);
  auto* const data = static_cast<std::byte*>(fit);
  if (data > base) ::munmap(base, static_cast<std::size_t>(data - base));
  if (base + mapped > data + size) ::munmap(data + size, static_cast<std::size_t>(base + mapped - (data + size)));
  AddressRange range;
  range.data_ = data;
  range.size_ = size;
  return range;
}

AddressRange::~AddressRange() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Status AddressRange::populate(std::size_t offset, std::size_t bytes) {
  KV_CHECK(offset <= size_ && bytes <= size_ - offset, "populate() stays inside the range");
  if (bytes == 0) return ok_status();
  const std::size_t begin = offset / page_bytes() * page_bytes();
  const std::size_t end = round_up(offset + bytes, page_bytes());
  int code = 0;
  do {  // a signal may interrupt it half way; done pages are skipped the next time
    code = ::madvise(data_ + begin, end - begin, MADV_POPULATE_WRITE);
  } while (code != 0 && (errno == EINTR || errno == EAGAIN));
  if (code == 0) return ok_status();
  if (errno != EINVAL && errno != ENOSYS)
    return Error{ErrorCode::does_not_fit, fmt::format("{} of memory: {}", format_bytes(end - begin), last_error())};
  for (std::size_t at = begin; at < end; at += page_bytes()) {  // an older kernel: a write fault on every page
    volatile auto* byte = reinterpret_cast<volatile unsigned char*>(data_ + at);
    *byte = *byte;
  }
  return ok_status();
}

void AddressRange::release(std::size_t offset, std::size_t bytes) {
  KV_CHECK(offset <= size_ && bytes <= size_ - offset, "release() stays inside the range");
  const std::size_t begin = round_up(offset, page_bytes());
  const std::size_t end = (offset + bytes) / page_bytes() * page_bytes();
  if (begin >= end) return;
  KV_CHECK(::madvise(data_ + begin, end - begin, MADV_DONTNEED) == 0, "our own pages can be given back");
}

bool AddressRange::advise_huge_pages() { return ::madvise(data_, size_, MADV_HUGEPAGE) == 0; }

std::size_t AddressRange::resident(std::size_t offset, std::size_t bytes) const {
  KV_CHECK(offset <= size_ && bytes <= size_ - offset, "resident() stays inside the range");
  std::array<unsigned char, 4096> in_memory;
  const std::size_t end = round_up(offset + bytes, page_bytes());
  std::size_t pages = 0;
  for (std::size_t at = offset / page_bytes() * page_bytes(); at < end; at += in_memory.size() * page_bytes()) {
    const std::size_t part = std::min(end - at, in_memory.size() * page_bytes());
    KV_CHECK(::mincore(data_ + at, part, in_memory.data()) == 0, "our own pages can be asked about");
    pages += static_cast<std::size_t>(
        std::count_if(in_memory.begin(), in_memory.begin() + static_cast<std::ptrdiff_t>(part / page_bytes()),
                      [](unsigned char flags) { return (flags & 1) != 0; }));
  }
  return pages * page_bytes();
}

Result<Headroom> read_headroom(const std::filesystem::path& root) {
  const std::filesystem::path meminfo = root / "proc/meminfo";
  const std::optional<std::uint64_t> kibibytes = field(read_text(meminfo).value_or(""), "MemAvailable");
  if (!kibibytes) return Error{ErrorCode::io, fmt::format("{}: no MemAvailable line", meminfo.string())};
  Headroom headroom;
  KV_ASSIGN(headroom.system_available, checked_mul(*kibibytes, 1024));
  const std::string membership = read_text(root / "proc/self/cgroup").value_or("");
  headroom.cgroup_available = cgroup_available(root, membership, kVersion2);
  if (const auto version1 = cgroup_available(root, membership, kVersion1))
    headroom.cgroup_available = std::min(headroom.cgroup_available.value_or(*version1), *version1);
  return headroom;
}

namespace {

// Fields of /proc/self/statm, in pages: virtual size, resident, of those shared with files.
Result<std::uint64_t> statm_bytes(int field) {
  const std::string text = read_text("/proc/self/statm").value_or("");
  std::size_t at = 0;
  for (int i = 0; i < field && at != std::string::npos; ++i) at = text.find(' ', at == 0 ? 0 : at + 1);
  const auto pages = at == std::string::npos ? std::nullopt : leading_number(std::string_view(text).substr(at));
  if (!pages) return Error{ErrorCode::io, "/proc/self/statm: no resident size"};
  return *pages * page_bytes();
}

}  // namespace

Result<std::uint64_t> process_resident_bytes() { return statm_bytes(1); }
Result<std::uint64_t> process_file_bytes() { return statm_bytes(2); }

}  // namespace kvasir::platform
