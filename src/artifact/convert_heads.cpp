#include "artifact/convert_heads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "artifact/gguf_cursor.hpp"
#include "artifact/gguf_value.hpp"
#include "base/units.hpp"
#include "format/kv_format.hpp"

namespace kvasir::artifact {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kDefaultAlignment = 32;

// Values of general.file_type.
std::uint32_t file_type_of(TensorType type) { return type == TensorType::f32 ? 0 : type == TensorType::f16 ? 1 : 32; }

// Bytes in the order of a file, gathered before they are given on.
class Bytes {
 public:
  template <class T>
  Bytes& put(T value) {
    static_assert(std::endian::native == std::endian::little, "GGUF values are copied as they lie in memory");
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    return put(std::span(from, sizeof value));
  }
  Bytes& put(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Bytes& put_text(std::string_view text) { return put(std::uint64_t{text.size()}).put(std::as_bytes(std::span(text))); }
  Bytes& put_uint(std::string_view key, std::uint32_t value) {
    return put_text(key).put(static_cast<std::uint32_t>(GgufValueType::uint32)).put(value);
  }
  Bytes& pad_to(std::uint64_t multiple) {
    bytes_.resize(round_up(bytes_.size(), multiple));
    return *this;
  }
  std::span<const std::byte> span() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

bool is_vector(const GgufTensor& tensor) { return tensor.dims.size() == 1; }

bool ends_with_part(std::string_view name, std::string_view part) {
  return name.ends_with(fmt::format(".{}.weight", part)) || name.ends_with(fmt::format(".{}.bias", part));
}

class HeadsConverter {
 public:
  HeadsConverter(const GgufFile& file, const ModelGeometry& geometry, const HeadsPlan& plan, const ByteTaker& take)
      : file_(file), g_(geometry), plan_(plan), take_(take), from_(geometry.kv_heads.front()) {}

  Result<ConvertedHeads> run() {
    KV_TRY(check());
    KV_TRY(write_header());
    for (const GgufTensor& tensor : file_.tensors()) KV_TRY(write_tensor(tensor));
    const HeadsWay way = plan_.kv_heads == from_ ? HeadsWay::same : plan_.kv_heads > from_ ? HeadsWay::repeated : HeadsWay::pooled;
    return ConvertedHeads{way, from_, plan_.kv_heads, written_};
  }

 private:
  Error error(ErrorCode code, std::string_view what) const { return Error{code, fmt::format("{}: {}", file_.name(), what)}; }
  Error bad(std::string_view what) const { return error(ErrorCode::bad_input, what); }
  Error unsupported(std::string_view what) const { return error(ErrorCode::unsupported, what); }

  // Whether the model's KV heads can become so many.
  bool is_valid(std::uint32_t to) const { return to != 0 && g_.heads % to == 0 && (to % from_ == 0 || from_ % to == 0); }

  Status check() const {
    for (const std::uint32_t heads : g_.kv_heads) {
      if (heads != from_) return unsupported("attention.head_count_kv differs between layers; valid: one number for all");
    }
    if (!is_valid(plan_.kv_heads))
      return bad(fmt::format("kv-heads is {}; valid: multiples and divisors of its {} KV heads that divide its {} query heads: {}",
                             plan_.kv_heads, from_, g_.heads, valid_numbers()));
    for (std::uint32_t layer = 0; layer < g_.layers; ++layer) {
      for (const char* part : {"attn_k", "attn_v"}) KV_TRY(check_matrix(fmt::format("blk.{}.{}.weight", layer, part)));
    }
    for (const GgufTensor& tensor : file_.tensors()) {
      if (holds_heads(tensor)) KV_TRY(check_heads(tensor));
    }
    return ok_status();
  }

  std::string valid_numbers() const {
    std::string out;
    for (std::uint32_t n = 1; n <= g_.heads; ++n) {
      if (is_valid(n)) out += fmt::format("{}{}", out.empty() ? "" : ", ", n);
    }
    return out;
  }

  Status check_matrix(const std::string& name) const {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) return unsupported(fmt::format("has no tensor '{}'; valid: keys and values in matrices of their own", name));
    if (tensor->dims.size() == 2) return ok_status();
    return bad(fmt::format("tensor '{}' has {} dimensions; valid: 2", name, tensor->dims.size()));
  }

  // Of a matrix or a bias.
  Status check_heads(const GgufTensor& tensor) const {
    if (tensor.dims.back() != std::uint64_t{from_} * g_.head_dim)
      return bad(fmt::format("tensor '{}' has {} rows; valid: {} heads of {}", tensor.name, tensor.dims.back(), from_, g_.head_dim));
    if (is_vector(tensor) && block_elements(tensor.type) != 1)
      return unsupported(fmt::format("tensor '{}' is a vector in {}; valid: F32, F16, BF16", tensor.name, to_string(tensor.type)));
    return ok_status();
  }

  bool holds_heads(const GgufTensor& tensor) const {
    return ends_with_part(tensor.name, "attn_k") || ends_with_part(tensor.name, "attn_v");
  }

  // Dimensions in the new file: of tensors that hold heads the last one changes.
  std::vector<std::uint64_t> dims_of(const GgufTensor& tensor) const {
    std::vector<std::uint64_t> dims = tensor.dims;
    if (holds_heads(tensor)) dims.back() = std::uint64_t{plan_.kv_heads} * g_.head_dim;
    return dims;
  }

  TensorType type_of(const GgufTensor& tensor) const { return is_vector(tensor) ? TensorType::f32 : plan_.type; }

  // With what is left until the next tensor.
  Result<std::uint64_t> padded_bytes(const GgufTensor& tensor) const {
    std::uint64_t bytes = block_bytes(type_of(tensor));
    for (const std::uint64_t dim : dims_of(tensor)) {
      KV_ASSIGN(bytes, checked_mul(bytes, dim));
    }
    KV_TRY(checked_add(bytes, alignment_));
    return round_up(bytes, alignment_);
  }

  Status take(std::span<const std::byte> bytes) {
    written_ += bytes.size();
    return take_(bytes);
  }

  // The pairs as they lie in the file, but for those that change.
  Result<std::uint64_t> copy_metadata(Bytes& out) const {
    const std::string heads_key = g_.architecture + ".attention.head_count_kv";
    GgufCursor cursor(file_.bytes(), file_.name());
    KV_TRY(cursor.take(4 + sizeof(std::uint32_t) + sizeof(std::uint64_t)));   // magic, version, tensors
    KV_ASSIGN(const std::uint64_t pairs, cursor.scalar<std::uint64_t>());
    std::uint64_t kept = 0;
    for (std::uint64_t i = 0; i < pairs; ++i) {
      const std::uint64_t begin = cursor.position();
      KV_ASSIGN(const std::string_view key, cursor.string());
      KV_TRY(read_gguf_value(cursor));
      if (key == heads_key || key == "general.file_type") continue;
      out.put(file_.bytes().subspan(begin, cursor.position() - begin));
      ++kept;
    }
    out.put_uint(heads_key, plan_.kv_heads).put_uint("general.file_type", file_type_of(plan_.type));
    return kept + 2;
  }

  Status write_header() {
    Bytes pairs, entries;
    KV_ASSIGN(const std::uint64_t count, copy_metadata(pairs));
    if (file_.find("general.alignment") != nullptr) {
      KV_ASSIGN(alignment_, file_.get_uint("general.alignment"));
    }
    std::uint64_t offset = 0;
    for (const GgufTensor& tensor : file_.tensors()) {
      const std::vector<std::uint64_t> dims = dims_of(tensor);
      entries.put_text(tensor.name).put(static_cast<std::uint32_t>(dims.size()));
      for (const std::uint64_t dim : dims) entries.put(dim);
      entries.put(static_cast<std::uint32_t>(type_of(tensor))).put(offset);
      KV_ASSIGN(const std::uint64_t bytes, padded_bytes(tensor));
      KV_ASSIGN(offset, checked_add(offset, bytes));
    }
    Bytes header;
    header.put(std::as_bytes(std::span(std::string_view("GGUF")))).put(kVersion).put(std::uint64_t{file_.tensors().size()}).put(count);
    header.put(pairs.span()).put(entries.span()).pad_to(alignment_);
    return take(header.span());
  }

  // Values of one row of the old tensor.
  static void read_row(const GgufTensor& tensor, std::uint64_t row, std::span<float> values) {
    const std::uint64_t bytes = values.size() / block_elements(tensor.type) * block_bytes(tensor.type);
    dequantize(tensor.type, tensor.bytes.subspan(row * bytes, bytes), values);
  }

  // Row `row` of the new tensor, which holds heads: a row of a head, or the mean of that row of several.
  void read_head_row(const GgufTensor& tensor, std::uint64_t row, std::span<float> values) const {
    const std::uint64_t head = row / g_.head_dim, within = row % g_.head_dim;
    if (plan_.kv_heads >= from_) return read_row(tensor, head / (plan_.kv_heads / from_) * g_.head_dim + within, values);
    const std::uint64_t pooled = from_ / plan_.kv_heads;
    std::vector<double> sums(values.size(), 0.0);
    for (std::uint64_t one = 0; one < pooled; ++one) {
      read_row(tensor, (head * pooled + one) * g_.head_dim + within, values);
      for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
    }
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(sums[i] / static_cast<double>(pooled));
  }

  Status take_row(TensorType type, std::span<const float> values) {
    if (type == TensorType::f32) return take(std::as_bytes(values));
    std::vector<std::uint16_t> halves(values.size());
    std::ranges::transform(values, halves.begin(), type == TensorType::f16 ? format::encode_f16 : format::encode_bf16);
    return take(std::as_bytes(std::span(halves)));
  }

  // Row by row, so that no tensor is held. A vector of heads is rows of one element.
  Status write_tensor(const GgufTensor& tensor) {
    const std::vector<std::uint64_t> dims = dims_of(tensor);
    const bool heads = holds_heads(tensor);
    const std::uint64_t width = is_vector(tensor) && heads ? 1 : dims.front();
    std::uint64_t rows = 1;
    for (const std::uint64_t dim : dims) rows *= dim;   // checked with the header
    const std::uint64_t begin = written_;
    std::vector<float> values(width);
    for (std::uint64_t row = 0; row < rows / width; ++row) {
      if (heads) read_head_row(tensor, row, values);
      else read_row(tensor, row, values);
      KV_TRY(take_row(type_of(tensor), values));
    }
    KV_ASSIGN(const std::uint64_t all, padded_bytes(tensor));
    return take(std::vector<std::byte>(all - (written_ - begin)));
  }

  const GgufFile& file_;
  const ModelGeometry& g_;
  const HeadsPlan& plan_;
  const ByteTaker& take_;
  std::uint32_t from_;
  std::uint64_t alignment_ = kDefaultAlignment, written_ = 0;
};

}  // namespace

std::string_view to_string(HeadsWay way) {
  switch (way) {
    case HeadsWay::same: return "same";
    case HeadsWay::repeated: return "repeated";
    case HeadsWay::pooled: return "mean-pooled";
  }
  return "?";
}

Result<ConvertedHeads> convert_heads(const GgufFile& file, const HeadsPlan& plan, const ByteTaker& take) {
  if (plan.type != TensorType::f32 && plan.type != TensorType::f16 && plan.type != TensorType::bf16)
    return Error{ErrorCode::bad_input, fmt::format("the type is {}; valid: F32, F16, BF16", to_string(plan.type))};
  KV_ASSIGN(const ModelGeometry geometry, ModelGeometry::from_gguf(file));
  return HeadsConverter(file, geometry, plan, take).run();
}

}  // namespace kvasir::artifact
