// Mixers that keep a state of fixed size instead of rows: how many elements a sequence keeps in one layer, and how many weights
// the mixer has, from the numbers that configs give.
// Thread rule: pure functions; any thread.
// A convolution keeps its last kernel - 1 inputs: what the next token needs (some engines keep one more).
// REQUIRES: sizes within model_shape.hpp's limits (state, inner: kMaxWidth; conv_kernel: 1 to kMaxConvKernel); then no product
// here overflows 64 bits.
//
// Sources: Gated Delta Networks (arXiv 2412.06464), Kimi Linear (arXiv 2510.26692), MiniMax-01 (arXiv 2501.08313),
// Mamba (arXiv 2312.00752), Mamba-2 (arXiv 2405.21060).
#pragma once

#include <cstdint>

namespace kvasir::artifact {

inline constexpr std::uint32_t kMaxConvKernel = 1u << 10;

enum class Mixer : std::uint8_t {
  none,
  gated_delta,  // heads of key_dim x value_dim; keys have key_heads of their own
  kimi_delta,   // heads of key_dim x value_dim
  lightning,    // heads of key_dim x value_dim, no convolution
  mamba,        // inner x state
  mamba2,       // heads of value_dim x state
  short_conv,   // the inputs of a convolution alone (LFM2)
};

struct Recurrent {
  Mixer mixer = Mixer::none;
  std::uint32_t heads = 0;       // of the state; gated_delta: value heads
  std::uint32_t key_heads = 0;   // gated_delta
  std::uint32_t key_dim = 0, value_dim = 0;   // of a head
  std::uint32_t state = 0;       // mamba, mamba2: elements a channel
  std::uint32_t groups = 0;      // mamba2: that share B and C
  std::uint32_t inner = 0;       // mamba: channels
  std::uint32_t rank = 0;        // mamba: of the time step
  std::uint32_t conv_kernel = 1;
};

// Elements of a sequence in one layer.
std::uint64_t state_elements(const Recurrent& mixer, std::uint32_t width);

// Weights of the mixer in one layer, without norms and biases.
std::uint64_t mixer_parameters(const Recurrent& mixer, std::uint32_t width);

// Of an element, where the source does not say: delta and lightning states are kept in float32 by the engines that have
// them, the others in the model's type.
std::uint32_t default_state_bytes(Mixer mixer);

}  // namespace kvasir::artifact
