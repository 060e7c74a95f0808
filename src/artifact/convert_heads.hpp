// A model file with another number of KV heads, for measuring what heads cost and give: more by repeating each, fewer by the
// mean of neighbours (as the GQA paper starts its up-training, arXiv 2305.13245). All matrices are written in one type, so
// that files differ in their heads alone.
// Thread rule: pure but for the sink; one thread.
// Invariants: more heads change no attention: query head h reads the copy of the KV head that it read before. Fewer are another
// model. Metadata is copied byte for byte but for attention.head_count_kv and general.file_type; vectors become f32.
// Errors: bad_input naming key, value and what is valid: a number of heads that is neither a multiple nor a divisor of the
// model's or does not divide its query heads; tensors that are missing or misshapen; unsupported where layers differ, or keys
// and values share a matrix; the sink's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "artifact/geometry.hpp"
#include "artifact/gguf.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

enum class HeadsWay : std::uint8_t { same, repeated, pooled };
std::string_view to_string(HeadsWay way);   // "same", "repeated", "mean-pooled"

struct HeadsPlan {
  std::uint32_t kv_heads = 0;              // 1 to the query heads
  TensorType type = TensorType::f16;       // f32, f16 or bf16
};

struct ConvertedHeads {
  HeadsWay way = HeadsWay::same;
  std::uint32_t from = 0, to = 0;   // KV heads of a layer
  std::uint64_t bytes = 0;          // of the new file
};

// Takes the file's bytes in order.
using ByteTaker = std::function<Status(std::span<const std::byte>)>;

Result<ConvertedHeads> convert_heads(const GgufFile& file, const HeadsPlan& plan, const ByteTaker& take);

}  // namespace kvasir::artifact
