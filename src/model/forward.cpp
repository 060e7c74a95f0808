#include "model/forward.hpp"

#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "kernels/kernels.hpp"
#include "model/architecture.hpp"
#include "model/attention_groups.hpp"
#include "model/attention_pass.hpp"
#include "model/parallel.hpp"
#include "model/projector.hpp"
#include "model/weights.hpp"
#include "model/workspace.hpp"

namespace kvasir::model {
namespace {

AttentionSizes sizes_for(const AttentionGroups& groups, const ForwardLimits& l, std::size_t threads) {
  return widest_sizes(groups, l.rows, l.sequences, l.context, threads);
}

}  // namespace

// A step walks: embed, then for each layer {norm, qkv, attention, out, norm, gate and up, gating, down}, then norm and head for
// the rows that want logits. Each line is one parallel region.
struct Forward::State {
  State(std::shared_ptr<const Model> m, const ForwardLimits& l, platform::ThreadPool& p)
      : model(std::move(m)), g(model->geometry()), w(model->weights()), k(kernels::kernel_set(model->options().isa)), limits(l),
        pool(p), groups(attention_groups(g)), ws(g, l, sizes_for(groups, l, p.threads()), p.threads()), projector(*model, ws, p),
        attention(*model, groups, l, ws, p), epsilon(static_cast<float>(g.norm_epsilon)),
        gate(find_architecture(g.architecture)->activation == Activation::gelu ? k.gelu_mul : k.silu_mul) {
    rows.reserve(l.rows);
    wanted.reserve(l.rows);
    planned.reserve(l.sequences);
  }

  std::shared_ptr<const Model> model;
  const artifact::ModelGeometry& g;
  const Weights& w;
  const kernels::KernelSet& k;
  ForwardLimits limits;
  platform::ThreadPool& pool;
  AttentionGroups groups;
  Workspace ws;
  Projector projector;
  AttentionPass attention;
  float epsilon;
  void (*gate)(float* gate, const float* up, std::size_t n);
  std::vector<StepRow> rows;
  std::vector<PlannedSequence> planned;
  std::vector<std::uint32_t> wanted;   // rows of the step whose logits are wanted, ascending
  std::size_t held_first = 0, held = 0;   // those of `wanted` whose logits are held

  // Calls body(row) for each of `count` rows, on the threads.
  template <class Body>
  void each_row(std::size_t count, Body body) {
    parallel_chunks(pool, count, kRowChunk, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t row = begin; row < end; ++row) body(row);
    });
  }

  void begin(const StepInput& step) {
    rows.clear();
    planned.clear();
    wanted.clear();
    KV_CHECK(step.sequences.size() <= limits.sequences, "a step has no more sequences than the workspace");
    for (std::uint32_t s = 0; s < step.sequences.size(); ++s) {
      const StepSequence& seq = step.sequences[s];
      const auto count = static_cast<std::uint32_t>(seq.tokens.size());
      KV_CHECK(rows.size() + count <= limits.rows, "a step has no more rows than the workspace");
      KV_CHECK(seq.first_position + count <= limits.context, "positions stay within the context");
      KV_CHECK(seq.logits_rows <= count, "logits are wanted of rows of the step");
      for (std::uint32_t i = 0; i < count; ++i) {
        if (i + seq.logits_rows >= count) wanted.push_back(static_cast<std::uint32_t>(rows.size()));
        rows.push_back({s, seq.first_position + i});
      }
      planned.push_back({seq.first_position, count});
    }
    attention.begin(step, rows, planned);
  }

  // residual = embedding * embedding_scale
  void embed(const StepInput& step) {
    const auto by = static_cast<float>(g.embedding_scale);
    each_row(rows.size(), [&](std::size_t r) {
      const StepSequence& seq = step.sequences[rows[r].sequence];
      const TokenId token = seq.tokens[rows[r].position - seq.first_position];
      KV_CHECK(token >= 0 && static_cast<std::uint32_t>(token) < g.vocabulary, "token ids are within the vocabulary");
      float* const row = &ws.residual[r * g.width];
      k.unpack_row(w.embedding.matrix, static_cast<std::size_t>(token), row);
      if (by != 1.0f)
        for (std::size_t i = 0; i < g.width; ++i) row[i] *= by;
      attention.set_angles(r);
    });
  }

  // y = rms_norm(x) row by row (x itself where there is no weight), and its panels where the projection that reads it wants them.
  void norm(const float* x, const std::vector<float>& weight, std::size_t count, const Projection& next, float* y) {
    const kernels::ActivationPanels a = projector.panels(count, g.width);
    const bool quantize = projector.wants_panels(next);
    parallel_chunks(pool, count, kRowChunk, [&](std::size_t begin, std::size_t end, std::size_t) {
      if (weight.empty()) std::copy(x + begin * g.width, x + end * g.width, y + begin * g.width);
      else
        for (std::size_t r = begin; r < end; ++r) k.rms_norm(x + r * g.width, weight.data(), g.width, epsilon, y + r * g.width);
      if (quantize) k.quantize(y, g.width, begin, end, a);
    });
  }

  // residual += rms_norm(p of x + biases) * residual_scale; what an architecture does not have is left out, not multiplied by one.
  void add_to_residual(const Projection& p, Rows x, const std::vector<float>& post_norm) {
    const std::size_t count = rows.size();
    const auto by = static_cast<float>(g.residual_scale);
    if (!p.any_bias() && post_norm.empty() && by == 1.0f) {
      projector.project(p, x, count, {ws.residual.data(), g.width, true});
      return;
    }
    projector.project(p, x, count, {ws.normed.data(), g.width, false});
    each_row(count, [&](std::size_t r) {
      float* const row = &ws.normed[r * g.width];
      float* const residual = &ws.residual[r * g.width];
      add_bias(p, row);
      if (!post_norm.empty()) k.rms_norm(row, post_norm.data(), g.width, epsilon, row);
      if (by != 1.0f)
        for (std::size_t i = 0; i < g.width; ++i) row[i] *= by;
      for (std::size_t i = 0; i < g.width; ++i) residual[i] += row[i];
    });
  }

  void attend(const Layer& layer, std::uint32_t index) {
    const std::size_t count = rows.size();
    const Rows heads = {ws.heads.data(), attention.q_width(), attention.q_width()};
    norm(ws.residual.data(), layer.attention_norm, count, layer.qkv, ws.normed.data());
    projector.project(layer.qkv, {ws.normed.data(), g.width, g.width}, count, {ws.qkv.data(), attention.qkv_stride(), false});
    attention.run(index);
    projector.quantize(heads, count, layer.attention_out);
    add_to_residual(layer.attention_out, heads, layer.post_attention_norm);
  }

  void feed_forward(const Layer& layer) {
    const std::size_t count = rows.size(), inner = g.feed_forward;
    norm(ws.residual.data(), layer.feed_forward_norm, count, layer.gate_up, ws.normed.data());
    projector.project(layer.gate_up, {ws.normed.data(), g.width, g.width}, count, {ws.gate_up.data(), 2 * inner, false});
    const kernels::ActivationPanels a = projector.panels(count, inner);
    const bool quantize_down = projector.wants_panels(layer.down);
    parallel_chunks(pool, count, kRowChunk, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r) gate(&ws.gate_up[r * 2 * inner], &ws.gate_up[r * 2 * inner + inner], inner);
      if (quantize_down) k.quantize(ws.gate_up.data(), 2 * inner, begin, end, a);
    });
    add_to_residual(layer.down, {ws.gate_up.data(), inner, 2 * inner}, layer.post_feed_forward_norm);
  }

  // The residuals stay as the last layer left them, so the head may run again for other rows.
  void head(std::size_t first) {
    held_first = first;
    held = std::min<std::size_t>(limits.logits_rows, wanted.size() - first);
    if (held == 0) return;
    for (std::size_t i = 0; i < held; ++i) {
      std::copy_n(&ws.residual[wanted[first + i] * g.width], g.width, &ws.last_rows[i * g.width]);
    }
    norm(ws.last_rows.data(), w.output_norm, held, w.head, ws.hidden.data());
    projector.project(w.head, {ws.hidden.data(), g.width, g.width}, held, {ws.logits.data(), g.vocabulary, false});
    if (g.logit_scale == 1) return;
    const auto by = static_cast<float>(g.logit_scale);
    each_row(held, [&](std::size_t r) {
      for (std::size_t i = 0; i < g.vocabulary; ++i) ws.logits[r * g.vocabulary + i] /= by;
    });
  }

  void run(const StepInput& step) {
    begin(step);
    embed(step);
    for (std::uint32_t l = 0; l < g.layers; ++l) {
      attend(w.layers[l], l);
      feed_forward(w.layers[l]);
    }
    head(0);
  }
};

Forward::Forward(std::shared_ptr<const Model> model, const ForwardLimits& limits, platform::ThreadPool& pool)
    : state_(std::make_unique<State>(std::move(model), limits, pool)) {}
Forward::~Forward() = default;

void Forward::run(const StepInput& step) { state_->run(step); }

std::uint32_t Forward::logits_rows() const { return static_cast<std::uint32_t>(state_->wanted.size()); }

bool Forward::holds(std::uint32_t row) const {
  return row >= state_->held_first && row - state_->held_first < state_->held;
}

void Forward::hold_from(std::uint32_t first) {
  KV_CHECK(first < logits_rows(), "logits of rows that asked for them");
  state_->head(first);
}

std::span<const float> Forward::logits(std::uint32_t row) const {
  KV_CHECK(holds(row), "logits of a row that asked for them and is held");
  return {&state_->ws.logits[(row - state_->held_first) * state_->g.vocabulary], state_->g.vocabulary};
}

std::span<const float> Forward::hidden(std::uint32_t row) const {
  KV_CHECK(holds(row), "hidden state of a row that asked for logits and is held");
  return {&state_->ws.hidden[(row - state_->held_first) * state_->g.width], state_->g.width};
}

std::uint64_t Forward::workspace_bytes(const artifact::ModelGeometry& geometry, const ForwardLimits& limits, std::size_t threads) {
  return Workspace::bytes(geometry, limits, sizes_for(attention_groups(geometry), limits, threads), threads);
}

std::uint64_t Forward::logits_bytes(const artifact::ModelGeometry& geometry, const ForwardLimits& limits) {
  Carver counting(nullptr);
  counting.take<float>(std::size_t{limits.logits_rows} * geometry.vocabulary);
  return counting.used();
}

}  // namespace kvasir::model
