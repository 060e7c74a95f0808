// How a forward pass computes, as parts of a numeric id: what kernels/kernels.hpp specifies, named.
// Thread rule: pure; any thread.
#pragma once

#include "artifact/record.hpp"
#include "model/model.hpp"

namespace kvasir::model {

// Adds activation group and scale arithmetic, accumulation types of products and attention, MLA form, dropping policy and
// kernel revision. None depends on machine, threads, block size or batch.
void add_arithmetic(Compute compute, artifact::IdParts& parts);

}  // namespace kvasir::model
