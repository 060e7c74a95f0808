// The loop over tiles and row tiles of the integer products. Included after a class's matmul_*_body.hpp, which gives
// tile_rows<FORM, R>(): one tile of 32 outputs for R rows of one panel.

// Rows in blocks: while the tiles pass, a block's activations stay in L1 and its results in few pages.
inline constexpr std::size_t kRowBlock = 32;

template <WeightForm FORM>
KV_INLINE void tile_row_range(const PackedMatrix& w, const ActivationPanels& a, std::size_t tile, std::size_t row, std::size_t count, MatmulOutput out) {
  const bool cold = row % kRowBlock == 0;   // the first row tile of a block brings the weights in
  switch (count) {
    case 1: return tile_rows<FORM, 1>(w, a, tile, row, cold, out);
    case 2: return tile_rows<FORM, 2>(w, a, tile, row, cold, out);
    case 3: return tile_rows<FORM, 3>(w, a, tile, row, cold, out);
#if KV_MATMUL_ROWS > 4
    case 4: return tile_rows<FORM, 4>(w, a, tile, row, cold, out);
    case 5: return tile_rows<FORM, 5>(w, a, tile, row, cold, out);
    case 6: return tile_rows<FORM, 6>(w, a, tile, row, cold, out);
    case 7: return tile_rows<FORM, 7>(w, a, tile, row, cold, out);
#endif
    default: return tile_rows<FORM, kMatmulRows>(w, a, tile, row, cold, out);
  }
}

template <WeightForm FORM>
void matmul_form(const PackedMatrix& w, const ActivationPanels& a, std::size_t rows, std::size_t tile_begin, std::size_t tile_end, MatmulOutput out) {
  for (std::size_t block = 0; block < rows; block += kRowBlock) {
    const std::size_t block_end = block + kRowBlock < rows ? block + kRowBlock : rows;
    for (std::size_t tile = tile_begin; tile < tile_end; ++tile)
      for (std::size_t row = block; row < block_end;) {
        const std::size_t panel_end = (row / a.panel_rows + 1) * a.panel_rows;   // a row tile lies in one panel
        const std::size_t end = panel_end < block_end ? panel_end : block_end;
        const std::size_t count = end - row < kMatmulRows ? end - row : kMatmulRows;
        tile_row_range<FORM>(w, a, tile, row, count, out);
        row += count;
      }
  }
}

void matmul_int8(const PackedMatrix& w, const ActivationPanels& a, std::size_t rows, std::size_t tile_begin, std::size_t tile_end, MatmulOutput out) {
  switch (w.form) {
    case WeightForm::u2_f2m: return matmul_form<WeightForm::u2_f2m>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::u3_f2: return matmul_form<WeightForm::u3_f2>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::u4_d: return matmul_form<WeightForm::u4_d>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::u4_dm: return matmul_form<WeightForm::u4_dm>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::u4_sm: return matmul_form<WeightForm::u4_sm>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::u5_d: return matmul_form<WeightForm::u5_d>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::u5_dm: return matmul_form<WeightForm::u5_dm>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::u5_sm: return matmul_form<WeightForm::u5_sm>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::u6_s2: return matmul_form<WeightForm::u6_s2>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::u8_d: return matmul_form<WeightForm::u8_d>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::t4_d: return matmul_form<WeightForm::t4_d>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::t4_s: return matmul_form<WeightForm::t4_s>(w, a, rows, tile_begin, tile_end, out);
    case WeightForm::f32:
    case WeightForm::f16:
    case WeightForm::bf16: return;   // float forms have no integer product; the caller takes matmul_f32
  }
}
