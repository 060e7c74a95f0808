#include "platform/allocated_bytes.hpp"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace kvasir::platform {

std::optional<std::uint64_t> allocated_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::nullopt;
#else
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> statm(std::fopen("/proc/self/statm", "r"), &std::fclose);
  unsigned long long mapped_pages = 0;
  if (statm == nullptr || std::fscanf(statm.get(), "%llu", &mapped_pages) != 1) return std::nullopt;
  const struct mallinfo2 heap = mallinfo2();
  const std::uint64_t mapped = mapped_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  // `arena` is what the heap took from the system, `uordblks` what of it is in use; the rest is mapped directly.
  return mapped - heap.arena + heap.uordblks;
#endif
}

}  // namespace kvasir::platform
