#include "model/projector.hpp"

#include <algorithm>

#include "model/parallel.hpp"

namespace kvasir::model {
namespace {

constexpr std::size_t kChunksPerThread = 6;   // of a projection's tiles: small enough to even out a slowed core
constexpr std::size_t kStreamingRows = 8;     // up to so many rows weights come from memory: one long stream a thread

}  // namespace

Projector::Projector(const Model& model, Workspace& ws, platform::ThreadPool& pool)
    : k_(kernels::kernel_set(model.options().isa)), ws_(ws), pool_(pool), integer_(model.options().compute == Compute::int8) {}

kernels::ActivationPanels Projector::panels(std::size_t count, std::size_t inputs) const {
  return {ws_.panel_q.data(), ws_.panel_d.data(), ws_.panel_ds.data(), ws_.panel_sum.data(), ws_.panel_sum_low.data(), inputs,
          std::min(k_.panel_rows, count)};
}

void Projector::quantize(Rows x, std::size_t count, const Projection& next) {
  if (!wants_panels(next)) return;
  const kernels::ActivationPanels a = panels(count, x.width);
  parallel_chunks(pool_, count, kRowChunk,
                  [&](std::size_t begin, std::size_t end, std::size_t) { k_.quantize(x.data, x.stride, begin, end, a); });
}

void Projector::project(const Projection& p, Rows x, std::size_t count, kernels::MatmulOutput out) {
  const std::size_t tiles = p.tiles();
  const std::size_t chunks = pool_.threads() * (count <= kStreamingRows ? 1 : kChunksPerThread);
  parallel_chunks(pool_, tiles, (tiles + chunks - 1) / chunks, [&](std::size_t begin, std::size_t end, std::size_t thread) {
    project_tiles(p, x, count, out, begin, end, thread);
  });
}

void Projector::project_tiles(const Projection& p, Rows x, std::size_t count, kernels::MatmulOutput out, std::size_t begin,
                              std::size_t end, std::size_t thread) {
  std::size_t first_tile = 0, column = 0;
  for (const Linear& part : p.parts) {
    const std::size_t part_tiles = part.matrix.count();
    const std::size_t from = std::max(begin, first_tile), to = std::min(end, first_tile + part_tiles);
    if (from < to) {
      const kernels::MatmulOutput to_rows{out.data + column, out.stride, out.add};
      if (integer_ && kernels::is_integer(part.matrix.form))
        k_.matmul_int8(part.matrix, panels(count, x.width), count, from - first_tile, to - first_tile, to_rows);
      else
        k_.matmul_f32(part.matrix, x.data, x.stride, count, from - first_tile, to - first_tile, ws_.threads[thread].unpack.data(), to_rows);
    }
    first_tile += part_tiles;
    column += part.matrix.n;
  }
}

void add_bias(const Projection& p, float* row) {
  for (const Linear& part : p.parts) {
    for (std::size_t i = 0; i < part.bias.size(); ++i) row[i] += part.bias[i];
    row += part.matrix.n;
  }
}

}  // namespace kvasir::model
