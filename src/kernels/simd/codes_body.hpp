// What both classes' products read out of a half-block beside its codes: scales, offsets, and the table of the table forms.
// Included inside a class's namespace, after its lanes. The layout is that of kernels/packed_matrix.hpp; `scales` is
// where a half-block's codes end, h = 0 or 1 the half of the block's inputs.

KV_INLINE Floats scale_of(const FormTraits& t, const std::byte* scales, int h) {
  const auto* f16 = reinterpret_cast<const std::uint16_t*>(scales);
  const auto* f32 = reinterpret_cast<const float*>(scales);
  switch (t.scales) {
    case ScaleKind::d:
    case ScaleKind::dm: return load_f16(f16);
    case ScaleKind::s:
    case ScaleKind::sm: return load(f32);
    case ScaleKind::s2: return load(f32 + h * static_cast<int>(kLanes));
    case ScaleKind::f2: return mul(load_f16(f16), byte_floats(scales + (2 + h) * static_cast<int>(kLanes)));
    case ScaleKind::f2m: return mul(load_f16(f16), nibble_floats(scales + (4 + h) * static_cast<int>(kLanes), 0));
    case ScaleKind::none: break;
  }
  return zero();
}

// Zeros where the form adds nothing.
KV_INLINE Floats offset_of(const FormTraits& t, const std::byte* scales, int h) {
  const auto* f16 = reinterpret_cast<const std::uint16_t*>(scales) + kLanes;
  switch (t.scales) {
    case ScaleKind::dm: return load_f16(f16);
    case ScaleKind::sm: return load(reinterpret_cast<const float*>(scales) + kLanes);
    case ScaleKind::f2m:   // -0 - x is -x, of zeros too
      return sub(broadcast(-0.0f), mul(load_f16(f16), nibble_floats(scales + (4 + h) * static_cast<int>(kLanes), 4)));
    default: return zero();
  }
}

// Eight bytes of kTableCodes as a number: the array itself would be a symbol that other sources share.
constexpr std::uint64_t table_word(int first) {
  std::uint64_t word = 0;
  for (int i = 8; i-- > 0;) word = word << 8 | kTableCodes[first + i];
  return word;
}
KV_INLINE __m128i table_codes() {
  constexpr std::uint64_t low = table_word(0), high = table_word(8);
  return _mm_set_epi64x(static_cast<std::int64_t>(high), static_cast<std::int64_t>(low));
}
