#include "model/arithmetic.hpp"

#include "format/block_layout.hpp"
#include "kernels/packed_matrix.hpp"
#include "kernels/revision.hpp"

namespace kvasir::model {

void add_arithmetic(Compute compute, artifact::IdParts& parts) {
  // Compute::f32 leaves every activation as it is; int8 quantizes where the weight is quantized.
  if (compute == Compute::int8) {
    parts.add("activations.type", "int8").add("activations.group", std::uint64_t{kernels::kBlockInputs});
    parts.add("activations.scale", "f32: max / 127");
    parts.add("matmul.accumulation", "int32 in a group, f32 fma over groups in order");
  } else {
    parts.add("activations.type", "f32").add("activations.group", std::uint64_t{1}).add("activations.scale", "none");
    parts.add("matmul.accumulation", "f32 fma over inputs in order");
  }
  parts.add("attention.qk", "f32 fma over channels in order");
  parts.add("attention.softmax", "f32, 16-lane tree in a span, spans merged in order");
  parts.add("attention.pv", "f32 fma over keys in order");
  parts.add("attention.span_tokens", std::uint64_t{format::kSpanTokens});
  parts.add("mla.form", "none").add("dropping", "none");
  parts.add("kernels.revision", std::uint64_t{kernels::kKernelRevision});
}

}  // namespace kvasir::model
