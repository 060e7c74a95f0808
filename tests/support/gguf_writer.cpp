#include "tests/support/gguf_writer.hpp"

#include <fstream>

#include "artifact/gguf_value.hpp"
#include "base/check.hpp"

namespace kvasir::test {
namespace {

using artifact::GgufValueType;

template <class T>
constexpr GgufValueType kValueType = GgufValueType::array;
template <> constexpr GgufValueType kValueType<std::uint8_t> = GgufValueType::uint8;
template <> constexpr GgufValueType kValueType<std::int8_t> = GgufValueType::int8;
template <> constexpr GgufValueType kValueType<std::uint16_t> = GgufValueType::uint16;
template <> constexpr GgufValueType kValueType<std::int16_t> = GgufValueType::int16;
template <> constexpr GgufValueType kValueType<std::uint32_t> = GgufValueType::uint32;
template <> constexpr GgufValueType kValueType<std::int32_t> = GgufValueType::int32;
template <> constexpr GgufValueType kValueType<std::uint64_t> = GgufValueType::uint64;
template <> constexpr GgufValueType kValueType<std::int64_t> = GgufValueType::int64;
template <> constexpr GgufValueType kValueType<float> = GgufValueType::float32;
template <> constexpr GgufValueType kValueType<double> = GgufValueType::float64;
template <> constexpr GgufValueType kValueType<bool> = GgufValueType::boolean;
template <> constexpr GgufValueType kValueType<std::string_view> = GgufValueType::string;

void put_value(ByteSink& sink, std::string_view text) { sink.put_string(text); }
void put_value(ByteSink& sink, bool truth) { sink.put(static_cast<std::uint8_t>(truth)); }
template <class T>
void put_value(ByteSink& sink, T number) {
  sink.put(number);
}

}  // namespace

ByteSink& ByteSink::put_bytes(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

ByteSink& ByteSink::put_string(std::string_view text) {
  put(static_cast<std::uint64_t>(text.size()));
  return put_bytes(std::as_bytes(std::span(text)));
}

void ByteSink::pad_to(std::uint64_t multiple) {
  while (bytes_.size() % multiple != 0) bytes_.push_back(std::byte{0});
}

GgufWriter& GgufWriter::version(std::uint32_t version) {
  version_ = version;
  return *this;
}

GgufWriter& GgufWriter::alignment(std::uint32_t alignment) {
  KV_CHECK(alignment > 0, "padding needs an alignment; a lying one is a value of general.alignment");
  alignment_ = alignment;
  return value("general.alignment", alignment);
}

template <class T>
GgufWriter& GgufWriter::value(std::string_view key, T value) {
  metadata_.put_string(key).put(static_cast<std::uint32_t>(kValueType<T>));
  put_value(metadata_, value);
  ++pairs_;
  return *this;
}

template <class T>
GgufWriter& GgufWriter::array(std::string_view key, const std::vector<T>& values) {
  metadata_.put_string(key).put(static_cast<std::uint32_t>(GgufValueType::array));
  metadata_.put(static_cast<std::uint32_t>(kValueType<T>)).put(static_cast<std::uint64_t>(values.size()));
  for (const T element : values) put_value(metadata_, element);
  ++pairs_;
  return *this;
}

#define KV_WRITER_FOR(T)                                                 \
  template GgufWriter& GgufWriter::value<T>(std::string_view, T);        \
  template GgufWriter& GgufWriter::array<T>(std::string_view, const std::vector<T>&);
KV_WRITER_FOR(std::uint8_t)
KV_WRITER_FOR(std::int8_t)
KV_WRITER_FOR(std::uint16_t)
KV_WRITER_FOR(std::int16_t)
KV_WRITER_FOR(std::uint32_t)
KV_WRITER_FOR(std::int32_t)
KV_WRITER_FOR(std::uint64_t)
KV_WRITER_FOR(std::int64_t)
KV_WRITER_FOR(float)
KV_WRITER_FOR(double)
KV_WRITER_FOR(bool)
KV_WRITER_FOR(std::string_view)
#undef KV_WRITER_FOR

GgufWriter& GgufWriter::raw_value(std::string_view key, std::uint32_t type, std::span<const std::byte> bytes) {
  metadata_.put_string(key).put(type).put_bytes(bytes);
  ++pairs_;
  return *this;
}

GgufWriter& GgufWriter::tensor(std::string_view name, artifact::TensorType type, std::vector<std::uint64_t> dims,
                               std::span<const std::byte> data) {
  data_.pad_to(alignment_);
  raw_tensor(name, static_cast<std::uint32_t>(type), std::move(dims), data_.bytes().size());
  data_.put_bytes(data);
  return *this;
}

GgufWriter& GgufWriter::raw_tensor(std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dims,
                                   std::uint64_t offset) {
  entries_.put_string(name).put(static_cast<std::uint32_t>(dims.size()));
  for (const std::uint64_t dim : dims) entries_.put(dim);
  entries_.put(type).put(offset);
  ++tensors_;
  return *this;
}

GgufWriter& GgufWriter::claim_pairs(std::uint64_t count) {
  claimed_pairs_ = count;
  return *this;
}

GgufWriter& GgufWriter::claim_tensors(std::uint64_t count) {
  claimed_tensors_ = count;
  return *this;
}

std::vector<std::byte> GgufWriter::bytes() const {
  ByteSink file;
  file.put_bytes(std::as_bytes(std::span(std::string_view("GGUF")))).put(version_);
  file.put(claimed_tensors_.value_or(tensors_)).put(claimed_pairs_.value_or(pairs_));
  file.put_bytes(metadata_.bytes()).put_bytes(entries_.bytes());
  file.pad_to(alignment_);
  file.put_bytes(data_.bytes());
  return file.bytes();
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  KV_CHECK(file.good(), path + " can be written");
}

}  // namespace kvasir::test
