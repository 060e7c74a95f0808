// A GGUF model file: its metadata and where each tensor's bytes are. Versions 2 and 3, little endian, one file.
// The file is mapped read-only; opening reads the header alone, so it takes milliseconds whatever the size.
// Every count, length and offset from the file is checked before it is multiplied, allocated or followed.
//
// Thread rule: immutable after open(); any thread.
// Errors: bad_input names file, key, value and what would be valid; unsupported for split files and big endian; io.
// Source: the GGUF specification, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "artifact/tensor_type.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// Limits of a header; a file beyond them is refused as lying.
inline constexpr std::uint64_t kMaxMetadataPairs = 1u << 16;
inline constexpr std::uint64_t kMaxTensors = 1u << 16;
inline constexpr std::uint64_t kMaxArrayElements = 1u << 24;
inline constexpr std::uint32_t kMaxTensorDims = 4;

// A metadata array: elements of one kind. Integers and bools widen to int64 (elements above 2^63 - 1 are refused),
// floats to double; strings stay views into the mapped file. Nested arrays are refused.
struct GgufArray {
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string_view>> elements;
  std::size_t size() const {
    return std::visit([](const auto& v) { return v.size(); }, elements);
  }
};

using GgufValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, GgufArray>;

struct GgufTensor {
  std::string_view name;
  TensorType type = TensorType::f32;
  std::vector<std::uint64_t> dims;    // GGUF order: dims[0] is the contiguous one (K of a weight matrix), 1 to 4 of them
  std::span<const std::byte> bytes;   // within the mapping, exactly the tensor's size
};

class GgufFile {
 public:
  static Result<GgufFile> open(const std::string& path);
  // From memory (tests, fuzzing). The bytes must outlive the object. `name` is used in messages.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string name);

  GgufFile(GgufFile&&) noexcept;
  GgufFile& operator=(GgufFile&&) noexcept;
  ~GgufFile();

  const std::string& name() const;      // path as given
  std::uint32_t version() const;
  std::uint64_t file_bytes() const;
  std::span<const std::byte> bytes() const;   // the whole file

  // Metadata in file order.
  std::span<const std::pair<std::string_view, GgufValue>> metadata() const;
  const GgufValue* find(std::string_view key) const;   // nullptr if absent

  // Typed access. Errors: bad_input if the key is missing or holds another type; the message names both.
  Result<std::string_view> get_string(std::string_view key) const;
  Result<std::uint64_t> get_uint(std::string_view key) const;   // any non-negative integer type
  Result<double> get_float(std::string_view key) const;         // any float type, or an integer
  Result<bool> get_bool(std::string_view key) const;
  Result<std::span<const std::string_view>> get_strings(std::string_view key) const;
  Result<std::span<const std::int64_t>> get_ints(std::string_view key) const;
  Result<std::span<const double>> get_floats(std::string_view key) const;

  std::span<const GgufTensor> tensors() const;
  const GgufTensor* find_tensor(std::string_view name) const;   // nullptr if absent

 private:
  struct State;
  explicit GgufFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::artifact
