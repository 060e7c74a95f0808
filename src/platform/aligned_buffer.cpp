#include "platform/aligned_buffer.hpp"

#include <sys/mman.h>

#include "base/check.hpp"

namespace kvasir::platform {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  KV_CHECK(memory != MAP_FAILED, "the system has no memory for a buffer whose size was checked");
  if (bytes >= 2 * kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);   // advice: refused where the system forbids it
  data_ = static_cast<std::byte*>(memory);
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace kvasir::platform
