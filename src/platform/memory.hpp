// Memory from the operating system: address space reserved once, populated when needed, and how much there is to take.
// Thread rule: AddressRange has one owner; the readers are pure but for the file system.
// Source: madvise(2) (MADV_POPULATE_WRITE, Linux 5.14), cgroups v2 memory controller, proc(5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace kvasir::platform {

std::size_t page_bytes();
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Reserved address space, readable and writable, that costs memory only where populated or touched.
class AddressRange {
 public:
  AddressRange() = default;
  // bytes: rounded up to pages; alignment: a power of two. Errors: does_not_fit if the address space is refused.
  static Result<AddressRange> reserve(std::size_t bytes, std::size_t alignment = kHugePageBytes);
  ~AddressRange();
  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  // Makes the pages of [offset, offset + bytes) resident and writable now; content stays. Errors: does_not_fit if the
  // system refuses. REQUIRES: inside the range.
  Status populate(std::size_t offset, std::size_t bytes);
  // Gives the pages wholly inside [offset, offset + bytes) back; they read as zero afterwards.
  void release(std::size_t offset, std::size_t bytes);
  // Asks for huge pages. False if the system does not offer them: slower, never wrong.
  bool advise_huge_pages();
  // Bytes of [offset, offset + bytes) that are resident, in whole pages.
  std::size_t resident(std::size_t offset, std::size_t bytes) const;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// How much more memory this process can take before the system or its cgroup says no.
struct Headroom {
  std::uint64_t system_available = 0;             // MemAvailable
  std::optional<std::uint64_t> cgroup_available;  // the tightest limit of the cgroup and its parents; none = no limit
  std::uint64_t bytes() const {
    return cgroup_available && *cgroup_available < system_available ? *cgroup_available : system_available;
  }
};

// root: "/" but for tests, which lay out proc and sys below a folder of their own.
// Errors: io if /proc/meminfo cannot be read. A missing or malformed cgroup file counts as no limit.
Result<Headroom> read_headroom(const std::filesystem::path& root = "/");

// Resident bytes of this process. Errors: io.
Result<std::uint64_t> process_resident_bytes();
// Those of them that are pages of files: program, libraries, files that are mapped. Errors: io.
Result<std::uint64_t> process_file_bytes();

}  // namespace kvasir::platform
