// Scaled dot product attention, a block of query rows at a time.
#include "hetnn/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/norm/row_ops.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {
namespace {

// Query rows whose scores are held at once.
constexpr int64_t kQueryBlock = kMaskedRows;

int64_t aligned_elems(int64_t elems) { return (elems + 15) / 16 * 16; }

/// Where row l of head h of image b starts: b * batch + h * head + l * row + offset.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0, offset = 0;
  int64_t length = 0;
};

struct AttentionGeometry {
  int64_t batch = 1, heads = 1, kv_heads = 1;
  int64_t dim = 0, value_dim = 0;
  HeadStrides q, k, v, y;
  float scale = 1;
  bool causal = false, mask = false;
  UndefinedRows undefined = UndefinedRows::masked;
};

HeadStrides head_strides(const TensorView& view, int64_t dim, int64_t offset) {
  if (view.layout == Layout::strided) {
    return {.batch = view.strides[0],
            .head = view.strides[1],
            .row = view.strides[2],
            .offset = offset,
            .length = view.dims[2]};
  }
  if (view.rank == 4) {
    const int64_t length = view.dims[2], row = view.dims[3];
    return {.batch = view.dims[1] * length * row, .head = length * row, .row = row, .offset = offset, .length = length};
  }
  const int64_t length = view.dims[1], row = view.dims[2];
  return {.batch = length * row, .head = dim, .row = row, .offset = offset, .length = length};
}

// Of operands of three or four axes.
AttentionGeometry attention_geometry(const KernelCall& call) {
  const Params& p = call.params;
  AttentionGeometry g;
  g.mask = p.integer("mask", 0) != 0;
  const TensorView &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2];
  g.heads = p.integer("heads", q.rank == 4 ? q.dims[1] : 0);
  g.kv_heads = p.integer("kv_heads", k.rank == 4 ? k.dims[1] : g.heads);
  g.dim = p.integer("head_dim", q.rank == 4 ? q.dims[3] : 0);
  g.value_dim = p.integer("value_dim", v.rank == 4 ? v.dims[3] : g.dim);
  g.batch = q.dims[0];
  g.q = head_strides(q, g.dim, p.integer("q_offset", 0));
  g.k = head_strides(k, g.dim, p.integer("k_offset", 0));
  g.v = head_strides(v, g.value_dim, p.integer("v_offset", 0));
  g.y = head_strides(call.outputs[0], g.value_dim, 0);
  const double scale = p.real("scale", 0.0);
  g.scale =
      static_cast<float>(scale == 0.0 ? 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(g.dim, 1))) : scale);
  g.causal = p.integer("is_causal", 0) != 0;
  const std::string undefined = p.text("undefined", "masked");
  g.undefined = undefined == "kept"    ? UndefinedRows::kept
                : undefined == "zeros" ? UndefinedRows::zeros
                                       : UndefinedRows::masked;
  return g;
}

std::vector<int64_t> scores_shape(const AttentionGeometry& g) { return {g.batch, g.heads, g.q.length, g.k.length}; }

// Plain, or of four axes, of which the last lies side by side.
bool lies_in_rows(const TensorView& view) {
  return view.layout == Layout::plain || (view.layout == Layout::strided && view.rank == 4 && view.strides[3] == 1);
}

// Whether the view holds so many heads of that size.
bool holds_heads(const TensorView& view, const HeadStrides& s, int64_t heads, int64_t dim) {
  if (view.rank == 4) return view.dims[1] == heads && view.dims[3] == dim;
  return s.offset >= 0 && s.offset + heads * dim <= view.dims[2];
}

/// count <= kQueryBlock rows of k elements times panels, nothing added: out[r][c], c < cols. Panels are panel_elems >=
/// 16 k apart.
void multiply(const MicroTable& micro, const float* x, int64_t ld_x, int64_t count, int64_t k, const float* panels,
              int64_t panel_elems, int64_t cols, float* out, int64_t ld_out) {
  const std::byte* rows[kQueryBlock];
  for (int64_t r = 0; r < count; ++r) rows[r] = reinterpret_cast<const std::byte*>(x + r * ld_x);
  alignas(64) float sums[kMaxTileElems];
  MicroTile tile(sums);
  tile.taps = 1;
  tile.k = k;
  tile.rows_stride = count;
  tile.even_bytes = ld_x * 4;
  tile.panel_stride = panel_elems;
  tile.ld_out = ld_out;
  for (int64_t col = 0; col < cols;) {
    const int width = micro.panels_for(count, (cols - col + kPanel - 1) / kPanel, 2);
    const int64_t tiles = (count + micro.max_rows[width] - 1) / micro.max_rows[width];
    tile.panel = panels + col / kPanel * panel_elems;
    tile.cols = std::min(cols - col, width * kPanel);
    tile.prefetch = tile.panel;
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t begin = count * i / tiles, end = count * (i + 1) / tiles;
      tile.rows = rows + begin;
      tile.out = out + begin * ld_out + col;
      micro.run[width][end - begin](tile);
    }
    col += width * kPanel;
  }
}

class Attention final : public Kernel {
 public:
  explicit Attention(const KernelCall& call) : g_(attention_geometry(call)), micro_(&micro_table()), rows_(&row_ops()) {
    if (!g_.mask) return;
    const TensorView& mask = call.inputs[3];
    mask_is_bool_ = mask.dtype == DType::boolean;
    mask_strides_ = broadcast_operand(mask, scores_shape(g_), "attention: the mask").strides;
  }

  int64_t scratch_bytes(int threads) const override { return threads * slot_elems() * 4; }

  bool serial() const override { return g_.batch * g_.heads * g_.q.length * g_.k.length * g_.dim < 32768; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* q = reinterpret_cast<const float*>(inputs[0]);
    const auto* k = reinterpret_cast<const float*>(inputs[1]);
    const auto* v = reinterpret_cast<const float*>(inputs[2]);
    auto* y = reinterpret_cast<float*>(outputs[0]);
    // Slot: packed keys, packed values, scores, their mask where it is not read as it lies.
    float* keys = reinterpret_cast<float*>(context.scratch) + context.thread * slot_elems();
    float* values = keys + key_elems();
    float* scores = values + value_elems();
    float* mask = scores + kQueryBlock * score_pitch();
    const int64_t blocks = (g_.q.length + kQueryBlock - 1) / kQueryBlock;
    const Share share = share_of(g_.batch * g_.heads * blocks, context.thread, context.threads);
    int64_t packed = -1;
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t h = item / blocks % g_.heads, b = item / (blocks * g_.heads);
      const int64_t kv = h / (g_.heads / g_.kv_heads);
      if (packed != b * g_.kv_heads + kv) {
        packed = b * g_.kv_heads + kv;
        pack(k + g_.k.offset + b * g_.k.batch + kv * g_.k.head, v + g_.v.offset + b * g_.v.batch + kv * g_.v.head, keys,
             values);
      }
      const int64_t begin = item % blocks * kQueryBlock;
      const int64_t count = std::min(kQueryBlock, g_.q.length - begin);
      // A causal block reads no key behind its last row.
      const int64_t length = g_.causal ? std::min(g_.k.length, begin + count) : g_.k.length;
      const float* q_rows = q + g_.q.offset + b * g_.q.batch + h * g_.q.head + begin * g_.q.row;
      multiply(*micro_, q_rows, g_.q.row, count, g_.dim, keys, g_.dim * kPanel, length, scores, score_pitch());
      MaskedRow masked[kQueryBlock];
      for (int64_t r = 0; r < count; ++r) {
        masked[r] = {.x = scores + r * score_pitch(), .n = g_.causal ? std::min(length, begin + r + 1) : length};
        if (g_.mask) mask_row(inputs[3], b, h, begin + r, mask + r * score_pitch(), masked[r]);
      }
      rows_->softmax_masked(masked, count, g_.scale, g_.undefined);
      for (int64_t r = 0; r < count; ++r) std::fill(masked[r].x + masked[r].n, masked[r].x + length, 0.0f);
      float* out = y + g_.y.batch * b + g_.y.head * h + begin * g_.y.row;
      // The values' panels are as deep as there are keys, even where a causal block uses only the first `length`.
      multiply(*micro_, scores, score_pitch(), count, length, values, g_.k.length * kPanel, g_.value_dim, out,
               g_.y.row);
    }
  }

 private:
  int64_t key_elems() const { return (g_.k.length + kPanel - 1) / kPanel * kPanel * g_.dim; }
  int64_t value_elems() const { return (g_.value_dim + kPanel - 1) / kPanel * kPanel * g_.k.length; }
  int64_t score_pitch() const { return aligned_elems(g_.k.length); }
  int64_t slot_elems() const {
    const bool copies_mask = g_.mask && mask_strides_[3] != 1;
    return key_elems() + value_elems() + (copies_mask ? 2 : 1) * kQueryBlock * score_pitch();
  }

  // Keys as columns of panels [ceil(L/16)][D][16], values as [ceil(Dv/16)][L][16].
  void pack(const float* k, const float* v, float* keys, float* values) const {
    PanelShape key_shape, value_shape;
    key_shape.k = g_.dim;
    key_shape.cols = g_.k.length;
    pack_panels(key_shape, k, {0, g_.k.row, 0, 1}, keys);
    value_shape.k = g_.k.length;
    value_shape.cols = g_.value_dim;
    pack_panels(value_shape, v, {0, 1, 0, g_.v.row}, values);
  }

  // Of a row's scores; what is not read as it lies is copied to `room`.
  void mask_row(const std::byte* mask, int64_t b, int64_t h, int64_t row, float* room, MaskedRow& to) const {
    const int64_t at = b * mask_strides_[0] + h * mask_strides_[1] + row * mask_strides_[2], step = mask_strides_[3];
    const auto together = [&]<typename T>(const T* from, T* copy) -> const T* {
      if (step == 1) return from;
      for (int64_t i = 0; i < to.n; ++i) copy[i] = from[i * step];
      return copy;
    };
    if (mask_is_bool_) {
      to.allowed = together(reinterpret_cast<const uint8_t*>(mask) + at, reinterpret_cast<uint8_t*>(room));
    } else {
      to.added = together(reinterpret_cast<const float*>(mask) + at, room);
    }
  }

  AttentionGeometry g_;
  const MicroTable* micro_;
  const RowOps* rows_;
  bool mask_is_bool_ = false;
  std::array<int64_t, 8> mask_strides_{};
};

}  // namespace

Refusal serves_attention(const KernelCall& call) {
  Terms terms("attention", call);
  terms.of(DType::f32, 3);
  for (const std::span<const TensorView> side : {call.inputs.first(3), call.outputs})
    for (const TensorView& view : side)
      terms.hold(view.rank == 3 || view.rank == 4, "takes [B, heads, L, D] and [B, L, width]; got ", view_text(view))
          .hold(lies_in_rows(view), "takes rows that lie side by side; got ", view_text(view));
  if (!terms.met()) return terms;
  const TensorView &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2], &y = call.outputs[0];
  const AttentionGeometry g = attention_geometry(call);
  terms
      .hold(g.heads >= 0 && g.dim >= 0 && g.value_dim >= 0 &&
                (g.heads == 0 || (g.kv_heads >= 1 && g.heads % g.kv_heads == 0)),
            "takes a multiple of kv_heads as heads, and sizes of 0 or more; got heads ", g.heads, ", kv_heads ",
            g.kv_heads, ", head_dim ", g.dim, ", value_dim ", g.value_dim)
      .hold(holds_heads(q, g.q, g.heads, g.dim) && holds_heads(k, g.k, g.kv_heads, g.dim) &&
                holds_heads(v, g.v, g.kv_heads, g.value_dim) && holds_heads(y, g.y, g.heads, g.value_dim) &&
                g.k.length == g.v.length && g.y.length == g.q.length && k.dims[0] == g.batch && v.dims[0] == g.batch &&
                y.dims[0] == g.batch,
            "takes operands of one batch that hold their heads; got q ", view_text(q), " from element ", g.q.offset,
            ", k ", view_text(k), " from element ", g.k.offset, ", v ", view_text(v), " from element ", g.v.offset,
            ", output ", view_text(y));
  if (!terms.met() || !g.mask) return terms;
  const TensorView& mask = call.inputs[3];
  return terms.hold(mask.layout == Layout::plain, "takes a plain mask; got ", view_text(mask))
      .hold(mask.dtype == DType::boolean || mask.dtype == DType::f32, "takes a mask of f32 or bool; got ",
            dtype_name(mask.dtype))
      .hold(broadcasts(mask, scores_shape(g)), "takes a mask that broadcasts to the scores; got ", view_text(mask));
}

std::unique_ptr<Kernel> make_attention(const KernelCall& call) { return std::make_unique<Attention>(call); }

namespace {

// Products of every head, and between them the softmax of its scores.
Work attention_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  constexpr double kScores = 20;  // in the time of so many multiply-adds of vectors 16 scores become weights
  const AttentionGeometry g = attention_geometry(call);
  const double bytes = bytes_of(call.inputs) + bytes_of(call.outputs);
  const int64_t length = g.q.length, keys = g.k.length, panels = (keys + kPanel - 1) / kPanel;
  Work work = Work().fetch(bytes, bytes, machine);
  work.multiplies = static_cast<double>(g.batch * g.heads) *
                    (product_multiplies(length, 1, g.dim, keys) + product_multiplies(length, 1, keys, g.value_dim) +
                     kScores * static_cast<double>(length * panels));
  work.grains = std::max<int64_t>(1, g.batch * g.heads * ((length + kQueryBlock - 1) / kQueryBlock));
  return work;
}

}  // namespace

std::span<const Variant> attention_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "attention",
       .op = "scaled_dot_product_attention",
       .speed = "attention",
       .serves = serves_attention,
       .create = make_attention,
       .layout = LayoutWish::strided,
       .work = attention_work},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
