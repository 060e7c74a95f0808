// Random weights of every tensor type, as a GGUF file stores them. Thread rule: one thread a generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "artifact/tensor_type.hpp"
#include "base/prng.hpp"

namespace kvasir::test {

// `elements` values (a multiple of block_elements(type)) of mean about 0 and standard deviation about `deviation`.
// Quantised types get random quants under scales that differ from block to block: every bit of a block is in use.
std::vector<std::byte> random_weights(artifact::TensorType type, std::size_t elements, float deviation,
                                      PhiloxSequence& random);

// The same as float32 values with the given mean: norm weights and biases.
std::vector<std::byte> random_floats(std::size_t elements, float mean, float deviation, PhiloxSequence& random);

}  // namespace kvasir::test
