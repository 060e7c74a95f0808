#include "artifact/recurrent.hpp"

namespace kvasir::artifact {
namespace {

using u64 = std::uint64_t;

// Channels that pass through the short convolution.
u64 conv_channels(const Recurrent& m, u64 width) {
  switch (m.mixer) {
    case Mixer::gated_delta: return 2 * u64{m.key_heads} * m.key_dim + u64{m.heads} * m.value_dim;
    case Mixer::kimi_delta: return u64{m.heads} * (2 * u64{m.key_dim} + m.value_dim);
    case Mixer::mamba: return m.inner;
    case Mixer::mamba2: return u64{m.heads} * m.value_dim + 2 * u64{m.groups} * m.state;
    case Mixer::short_conv: return width;
    case Mixer::lightning:
    case Mixer::none: return 0;
  }
  return 0;
}

u64 matrix_state(const Recurrent& m) {
  switch (m.mixer) {
    case Mixer::gated_delta:
    case Mixer::kimi_delta:
    case Mixer::lightning: return u64{m.heads} * m.key_dim * m.value_dim;
    case Mixer::mamba: return u64{m.inner} * m.state;
    case Mixer::mamba2: return u64{m.heads} * m.value_dim * m.state;
    case Mixer::short_conv:
    case Mixer::none: return 0;
  }
  return 0;
}

}  // namespace

u64 state_elements(const Recurrent& mixer, std::uint32_t width) {
  return matrix_state(mixer) + conv_channels(mixer, width) * (mixer.conv_kernel - 1);
}

u64 mixer_parameters(const Recurrent& m, std::uint32_t width) {
  const u64 in = width, keys = u64{m.key_heads} * m.key_dim, values = u64{m.heads} * m.value_dim;
  const u64 conv = conv_channels(m, width) * m.conv_kernel;
  switch (m.mixer) {
    case Mixer::gated_delta:  // q, k, v, output gate, two gates a head; then out
      return in * (2 * keys + 2 * values + 2 * u64{m.heads}) + values * in + conv;
    case Mixer::kimi_delta: {  // q, k, v, one gate a head, two gates through a bottleneck of one head; then out
      const u64 all_keys = u64{m.heads} * m.key_dim;
      return in * (2 * all_keys + values + m.heads) + 2 * (in * m.value_dim + u64{m.value_dim} * values) + values * in + conv;
    }
    case Mixer::lightning:  // q, k, v, output gate, out
      return in * (2 * u64{m.heads} * m.key_dim + 2 * values) + values * in;
    case Mixer::mamba:  // in (twice), x to (step, B, C), step, A, out
      return in * 2 * u64{m.inner} + u64{m.inner} * (m.rank + 2 * u64{m.state}) + u64{m.rank} * m.inner +
             u64{m.inner} * m.state + u64{m.inner} * in + conv;
    case Mixer::mamba2:  // in (z, x, B, C, step), out
      return in * (2 * values + 2 * u64{m.groups} * m.state + m.heads) + values * in + conv;
    case Mixer::short_conv: return in * 3 * in + in * in + conv;
    case Mixer::none: return 0;
  }
  return 0;
}

std::uint32_t default_state_bytes(Mixer mixer) {
  const bool wide = mixer == Mixer::gated_delta || mixer == Mixer::kimi_delta || mixer == Mixer::lightning;
  return wide ? 4 : 2;
}

}  // namespace kvasir::artifact
