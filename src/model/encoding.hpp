// A model file's tensor types as the kernels name them.
// Thread rule: pure; any thread.
#pragma once

#include "artifact/tensor_type.hpp"
#include "kernels/pack.hpp"

namespace kvasir::model {

kernels::SourceEncoding encoding_of(artifact::TensorType type);

}  // namespace kvasir::model
