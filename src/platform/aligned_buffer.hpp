// Owned memory for weights and workspace: zeroed, 64-byte aligned, on huge pages where it is large enough to gain.
// Thread rule: a value; move-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace kvasir::platform {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Aborts when the system has no memory: callers size buffers from limits they have checked.
  explicit AlignedBuffer(std::size_t bytes);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const { return reinterpret_cast<T*>(data_); }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// An AlignedBuffer of `count` elements of a trivial type.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t count) : buffer_(count * sizeof(T)), count_(count) {}
  T* data() const { return buffer_.template as<T>(); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return data()[i]; }
  std::span<T> span() const { return {data(), count_}; }

 private:
  AlignedBuffer buffer_;
  std::size_t count_ = 0;
};

}  // namespace kvasir::platform
