// Writes GGUF files for tests: well-formed ones, and ones that lie. Nothing is checked: what is asked is written.
// Thread rule: one thread.
// Errors: none; a wrong file is what some tests want.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/tensor_type.hpp"

namespace kvasir::test {

// Little-endian bytes, appended. Also what the bodies of lying headers are written with.
class ByteSink {
 public:
  template <class T>
  ByteSink& put(T value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    return *this;
  }
  ByteSink& put_bytes(std::span<const std::byte> bytes);
  ByteSink& put_string(std::string_view text);  // a 64-bit length, then the text
  void pad_to(std::uint64_t multiple);
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class GgufWriter {
 public:
  GgufWriter& version(std::uint32_t version);
  // Writes the key general.alignment and pads by it.
  GgufWriter& alignment(std::uint32_t alignment);

  // T: bool, (u)int8 to (u)int64, float, double, std::string_view.
  template <class T>
  GgufWriter& value(std::string_view key, T value);
  template <class T>
  GgufWriter& array(std::string_view key, const std::vector<T>& values);
  // A value of any type number with any bytes behind it.
  GgufWriter& raw_value(std::string_view key, std::uint32_t type, std::span<const std::byte> bytes);

  // data: the tensor's blocks; placed behind the tensors before it, at the next multiple of the alignment.
  GgufWriter& tensor(std::string_view name, artifact::TensorType type, std::vector<std::uint64_t> dims,
                     std::span<const std::byte> data);
  // An entry that claims anything; adds no data.
  GgufWriter& raw_tensor(std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dims, std::uint64_t offset);

  // What the header says instead of the true counts.
  GgufWriter& claim_pairs(std::uint64_t count);
  GgufWriter& claim_tensors(std::uint64_t count);

  std::vector<std::byte> bytes() const;

 private:
  std::uint32_t version_ = 3;
  std::uint32_t alignment_ = 32;
  std::uint64_t pairs_ = 0;
  std::uint64_t tensors_ = 0;
  std::optional<std::uint64_t> claimed_pairs_, claimed_tensors_;
  ByteSink metadata_, entries_, data_;
};

// Overwrites `path`. Aborts the test if it cannot.
void write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace kvasir::test
