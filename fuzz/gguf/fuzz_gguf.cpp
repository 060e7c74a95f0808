// Drives the GGUF reader, the geometry and dequantization with hostile files. A finding is a crash, a sanitizer's report,
// a time-out or an allocation beyond the limit; every refusal must have a message.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "artifact/geometry.hpp"
#include "artifact/gguf.hpp"
#include "artifact/tensor_type.hpp"
#include "base/check.hpp"
#include "format/block_layout.hpp"

namespace {

using namespace kvasir;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kMaxElements = 1 << 14;  // dequantized of a tensor

void read_geometry(const artifact::GgufFile& file) {
  const auto geometry = artifact::ModelGeometry::from_gguf(file);
  if (!geometry.ok()) {
    KV_CHECK(!geometry.error().message.empty(), "a refusal says why");
    return;
  }
  KV_CHECK(geometry->kv_heads.size() == geometry->layers, "one number of KV heads a layer");
  for (const format::CacheGroup& group : geometry->kv_geometry({}, 32).groups) (void)format::BlockLayout::create(group);
}

void dequantize_starts(const artifact::GgufFile& file) {
  const auto* begin = file.bytes().data();
  for (const artifact::GgufTensor& tensor : file.tensors()) {
    KV_CHECK(tensor.bytes.data() >= begin && tensor.bytes.data() + tensor.bytes.size() <= begin + file.bytes().size(),
             "a tensor lies within its file");
    const std::size_t block = artifact::block_bytes(tensor.type);
    const std::size_t elements = artifact::block_elements(tensor.type);
    const std::size_t blocks = std::min(tensor.bytes.size() / block, kMaxElements / elements);
    std::vector<float> values(blocks * elements);
    artifact::dequantize(tensor.type, tensor.bytes.first(blocks * block), values);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = artifact::GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz.gguf");
  if (!file.ok()) {
    KV_CHECK(!file.error().message.empty(), "a refusal says why");
    return 0;
  }
  for (const auto& [key, value] : file->metadata()) KV_CHECK(file->find(key) == &value, "every key is found");
  read_geometry(*file);
  dequantize_starts(*file);
  return 0;
}
