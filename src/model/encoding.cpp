#include "model/encoding.hpp"

#include "base/check.hpp"

namespace kvasir::model {

using artifact::TensorType;
using kernels::SourceEncoding;

SourceEncoding encoding_of(TensorType type) {
  switch (type) {
    case TensorType::f32: return SourceEncoding::f32;
    case TensorType::f16: return SourceEncoding::f16;
    case TensorType::bf16: return SourceEncoding::bf16;
    case TensorType::q4_0: return SourceEncoding::q4_0;
    case TensorType::q4_1: return SourceEncoding::q4_1;
    case TensorType::q5_0: return SourceEncoding::q5_0;
    case TensorType::q5_1: return SourceEncoding::q5_1;
    case TensorType::q8_0: return SourceEncoding::q8_0;
    case TensorType::q2_k: return SourceEncoding::q2_k;
    case TensorType::q3_k: return SourceEncoding::q3_k;
    case TensorType::q4_k: return SourceEncoding::q4_k;
    case TensorType::q5_k: return SourceEncoding::q5_k;
    case TensorType::q6_k: return SourceEncoding::q6_k;
    case TensorType::iq4_nl: return SourceEncoding::iq4_nl;
    case TensorType::iq4_xs: return SourceEncoding::iq4_xs;
  }
  KV_CHECK(false, "every tensor type has an encoding");
  return SourceEncoding::f32;
}

}  // namespace kvasir::model
