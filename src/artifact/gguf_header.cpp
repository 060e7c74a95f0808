#include "artifact/gguf_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "artifact/gguf_cursor.hpp"
#include "artifact/gguf_value.hpp"
#include "base/units.hpp"

namespace kvasir::artifact {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 1u << 20;
constexpr std::uint64_t kMaxKeyBytes = 65535;  // of the specification
constexpr std::uint64_t kMaxNameBytes = 64;    // of the specification, and ggml's own limit
// The shortest a metadata pair and a tensor entry can be: a count that the file cannot hold is refused before anything
// is allocated for it.
constexpr std::uint64_t kSmallestPair = 8 + 1 + 4 + 1;
constexpr std::uint64_t kSmallestTensor = 8 + 1 + 4 + 8 + 4 + 8;

struct Counts {
  std::uint64_t tensors = 0;
  std::uint64_t pairs = 0;
};

// A tensor entry before it is known where the data section starts.
struct Extent {
  std::uint64_t offset = 0;  // from the start of the data section
  std::uint64_t bytes = 0;
  std::size_t tensor = 0;
};

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> file, const std::string& name) : file_(file), cursor_(file, name) {}

  Result<GgufHeader> read() {
    KV_ASSIGN(const Counts counts, read_preamble());
    for (std::uint64_t i = 0; i < counts.pairs; ++i) KV_TRY(read_pair(i));
    KV_TRY(check_not_split());
    KV_ASSIGN(alignment_, read_alignment());
    for (std::uint64_t i = 0; i < counts.tensors; ++i) KV_TRY(read_tensor(i));
    KV_TRY(place_tensors());
    return std::move(header_);
  }

 private:
  Result<Counts> read_preamble() {
    KV_ASSIGN(const auto magic, cursor_.take(kMagic.size()));
    const std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
    if (text != kMagic)
      return cursor_.bad(fmt::format("the file starts with '{}'; a GGUF file starts with 'GGUF'", printable(text)));
    KV_ASSIGN(header_.version, cursor_.scalar<std::uint32_t>());
    KV_TRY(check_version(header_.version));
    Counts counts;
    cursor_.set_context("header, number of tensors");
    KV_ASSIGN(counts.tensors, cursor_.scalar<std::uint64_t>());
    cursor_.set_context("header, number of metadata pairs");
    KV_ASSIGN(counts.pairs, cursor_.scalar<std::uint64_t>());
    KV_TRY(check_count("metadata pairs", counts.pairs, kMaxMetadataPairs, kSmallestPair));
    KV_TRY(check_count("tensors", counts.tensors, kMaxTensors, kSmallestTensor));
    return counts;
  }

  Status check_version(std::uint32_t version) const {
    if (version == 2 || version == 3) return ok_status();
    if (version != 0 && (version & 0xffffu) == 0)
      return cursor_.error(ErrorCode::unsupported, "the file is big endian; only little-endian files are offered");
    return cursor_.error(ErrorCode::unsupported,
                         fmt::format("GGUF version {} is not offered; offered are 2 and 3", version));
  }

  Status check_count(std::string_view what, std::uint64_t count, std::uint64_t most, std::uint64_t smallest) {
    cursor_.set_context("header");
    if (count > most) return cursor_.bad(fmt::format("{} {}; at most {} are valid", count, what, most));
    if (count > cursor_.remaining() / smallest)
      return cursor_.bad(fmt::format("{} {} need at least {} bytes, but the file has only {} more; it is truncated or "
                                     "its header lies",
                                     count, what, count * smallest, cursor_.remaining()));
    return ok_status();
  }

  Status read_pair(std::uint64_t index) {
    cursor_.set_context(fmt::format("metadata pair {}", index));
    KV_ASSIGN(const auto key, cursor_.string());
    if (key.empty()) return cursor_.bad("the key is empty; a key has 1 to 65535 bytes");
    if (key.size() > kMaxKeyBytes)
      return cursor_.bad(fmt::format("the key has {} bytes; a key has 1 to {}", key.size(), kMaxKeyBytes));
    cursor_.set_context(fmt::format("metadata key '{}'", printable(key)));
    if (!header_.metadata_by_key.emplace(key, header_.metadata.size()).second)
      return cursor_.bad("the key occurs twice; each key is valid once");
    KV_ASSIGN(auto value, read_gguf_value(cursor_));
    header_.metadata.emplace_back(key, std::move(value));
    return ok_status();
  }

  const GgufValue* find(std::string_view key) const {
    const auto found = header_.metadata_by_key.find(key);
    return found == header_.metadata_by_key.end() ? nullptr : &header_.metadata[found->second].second;
  }

  // An integer key that the header itself depends on.
  Result<std::uint64_t> read_known(std::string_view key, std::uint64_t fallback) {
    const GgufValue* value = find(key);
    if (value == nullptr) return fallback;
    cursor_.set_context(fmt::format("metadata key '{}'", key));
    if (const auto* number = std::get_if<std::uint64_t>(value)) return *number;
    if (const auto* number = std::get_if<std::int64_t>(value); number != nullptr && *number >= 0)
      return static_cast<std::uint64_t>(*number);
    return cursor_.bad(fmt::format("the value is {}; a non-negative integer is valid", kind_name(*value)));
  }

  Status check_not_split() {
    KV_ASSIGN(const auto parts, read_known("split.count", 1));
    if (parts <= 1) return ok_status();
    return cursor_.error(ErrorCode::unsupported,
                         fmt::format("the model is split in {} files; only whole models are offered (join them first, for "
                                     "example with llama-gguf-split --merge)",
                                     parts));
  }

  Result<std::uint64_t> read_alignment() {
    KV_ASSIGN(const auto alignment, read_known("general.alignment", kDefaultAlignment));
    if (alignment == 0 || alignment % 8 != 0 || alignment > kMaxAlignment)
      return cursor_.bad(fmt::format("the alignment is {}; valid are multiples of 8 from 8 to {}", alignment, kMaxAlignment));
    return alignment;
  }

  Status read_tensor(std::uint64_t index) {
    cursor_.set_context(fmt::format("tensor {}", index));
    GgufTensor tensor;
    KV_ASSIGN(tensor.name, cursor_.string());
    if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes)
      return cursor_.bad(fmt::format("the name has {} bytes; a tensor's name has 1 to {}", tensor.name.size(), kMaxNameBytes));
    cursor_.set_context(fmt::format("tensor '{}'", printable(tensor.name)));
    if (!header_.tensors_by_name.emplace(tensor.name, header_.tensors.size()).second)
      return cursor_.bad("the name occurs twice; each name is valid once");
    KV_ASSIGN(const auto dims, cursor_.scalar<std::uint32_t>());
    if (dims == 0 || dims > kMaxTensorDims)
      return cursor_.bad(fmt::format("{} dimensions; 1 to {} are valid", dims, kMaxTensorDims));
    for (std::uint32_t d = 0; d < dims; ++d) {
      KV_ASSIGN(const auto size, cursor_.scalar<std::uint64_t>());
      tensor.dims.push_back(size);
    }
    KV_ASSIGN(const auto type, cursor_.scalar<std::uint32_t>());
    const Result<TensorType> known = tensor_type_from_ggml(type);
    if (!known) return cursor_.error(known.error().code, known.error().message);
    tensor.type = *known;
    KV_ASSIGN(const auto bytes, tensor_bytes(tensor));
    KV_ASSIGN(const auto offset, cursor_.scalar<std::uint64_t>());
    if (offset % alignment_ != 0)
      return cursor_.bad(fmt::format("the offset is {}; valid are multiples of the alignment {}", offset, alignment_));
    extents_.push_back({offset, bytes, header_.tensors.size()});
    header_.tensors.push_back(std::move(tensor));
    return ok_status();
  }

  Result<std::uint64_t> tensor_bytes(const GgufTensor& tensor) const {
    std::uint64_t elements = 1;
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
      if (tensor.dims[d] == 0)
        return cursor_.bad(fmt::format("dimension {} of [{}] is 0; a dimension is at least 1", d, fmt::join(tensor.dims, ", ")));
      if (__builtin_mul_overflow(elements, tensor.dims[d], &elements)) return too_large(tensor);
    }
    const std::uint32_t block = block_elements(tensor.type);
    if (tensor.dims[0] % block != 0)
      return cursor_.bad(fmt::format("rows of {} elements; rows of type {} have a multiple of {}", tensor.dims[0],
                                     to_string(tensor.type), block));
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(elements / block, std::uint64_t{block_bytes(tensor.type)}, &bytes)) return too_large(tensor);
    return bytes;
  }

  Error too_large(const GgufTensor& tensor) const {
    return cursor_.bad(fmt::format("the size of [{}] is more than 64 bits hold", fmt::join(tensor.dims, ", ")));
  }

  // All entries are read, so the data section's start is known: gives each tensor its bytes.
  Status place_tensors() {
    if (extents_.empty()) return ok_status();
    cursor_.set_context("tensor data");
    const std::uint64_t start = round_up(cursor_.position(), alignment_);
    if (start > file_.size())
      return cursor_.bad(fmt::format("starts at byte {}, but the file has {}; it is truncated", start, file_.size()));
    const std::span<const std::byte> data = file_.subspan(start);
    for (const Extent& extent : extents_) {
      GgufTensor& tensor = header_.tensors[extent.tensor];
      cursor_.set_context(fmt::format("tensor '{}'", printable(tensor.name)));
      if (extent.offset > data.size() || extent.bytes > data.size() - extent.offset)
        return cursor_.bad(fmt::format("offset {} and {} bytes of data, but the file has only {} bytes of tensor data; it "
                                       "is truncated or its header lies",
                                       extent.offset, extent.bytes, data.size()));
      tensor.bytes = data.subspan(extent.offset, extent.bytes);
    }
    return check_no_overlap();
  }

  Status check_no_overlap() {
    std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
    for (std::size_t i = 1; i < extents_.size(); ++i) {
      const Extent& before = extents_[i - 1];
      if (before.offset + before.bytes <= extents_[i].offset) continue;
      cursor_.set_context(fmt::format("tensor '{}'", printable(header_.tensors[extents_[i].tensor].name)));
      return cursor_.bad(fmt::format("starts at offset {}, inside tensor '{}' at offset {} with {} bytes; tensors must not "
                                     "overlap",
                                     extents_[i].offset, printable(header_.tensors[before.tensor].name), before.offset,
                                     before.bytes));
    }
    return ok_status();
  }

  std::span<const std::byte> file_;
  GgufCursor cursor_;
  GgufHeader header_;
  std::uint64_t alignment_ = kDefaultAlignment;
  std::vector<Extent> extents_;
};

}  // namespace

Result<GgufHeader> read_gguf_header(std::span<const std::byte> file, const std::string& name) {
  return HeaderReader(file, name).read();
}

std::string_view kind_name(const GgufValue& value) {
  if (const auto* array = std::get_if<GgufArray>(&value)) {
    constexpr std::array<std::string_view, 3> names = {"an array of integers", "an array of floats", "an array of strings"};
    return names[array->elements.index()];
  }
  constexpr std::array<std::string_view, 5> names = {"a bool", "a signed integer", "an unsigned integer", "a float", "a string"};
  return names[value.index()];
}

}  // namespace kvasir::artifact
