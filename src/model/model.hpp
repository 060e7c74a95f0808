// A loaded model: its description and its weights, packed for the kernels. Immutable, shared by every pool that runs it.
//
// Thread rule: load() on one thread; a loaded Model is immutable, any thread.
// Invariants: every weight stands for exactly the value in the file (artifact/tensor_type.hpp); all shapes agree with
// geometry(). The file is not needed after load().
// Errors: bad_input for a missing or misshapen tensor (name, shape, what was expected); unsupported for an architecture
// or tensor type without a forward pass, naming those that have one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "artifact/geometry.hpp"
#include "artifact/gguf.hpp"
#include "base/result.hpp"
#include "model/footprint.hpp"
#include "platform/isa.hpp"

namespace kvasir::model {

// How activations enter the weight products. int8: quantized per 32 inputs where the weight is quantized. f32: never
// quantized; the quality baseline. Each has its own numeric id.
enum class Compute : std::uint8_t { int8, f32 };

struct ModelOptions {
  Compute compute = Compute::int8;
  platform::Isa isa = platform::Isa::scalar;   // from platform::choose_isa(); decides speed, never bits
  std::size_t threads = 2;                     // for packing
  // Positions that will be asked for; 0: the file's context. Of longrope models alone it decides bits: beyond the original
  // context the long factors hold, for every position.
  std::uint32_t context = 0;
};

struct Weights;   // model/weights.hpp

class Model {
 public:
  static Result<std::shared_ptr<const Model>> load(const artifact::GgufFile& file, const ModelOptions& options);

  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const artifact::ModelGeometry& geometry() const { return geometry_; }
  const ModelOptions& options() const { return options_; }
  // What the weights cost by the file's headers, and bytes that loading them took from the system, measured (the first
  // where it cannot be measured).
  const WeightFootprint& footprint() const { return footprint_; }
  std::uint64_t allocated_bytes() const { return allocated_; }
  const Weights& weights() const { return *weights_; }

  // Architectures that have a forward pass, as they are named in files.
  static std::vector<std::string> architectures();

 private:
  Model();
  artifact::ModelGeometry geometry_;
  ModelOptions options_;
  WeightFootprint footprint_;
  std::uint64_t allocated_ = 0;
  std::unique_ptr<Weights> weights_;
};

}  // namespace kvasir::model
