// gated_conv2d: a 1x1 convolution of x times a gate, one factor an image and channel (squeeze and excitation).
//
// A block of pixels is multiplied by its gate into scratch, from where the product reads it: the gated image is never
// written.
#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/block_ops.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }

struct GatedShape {
  int64_t batch, channels, pixels, filters;
};

GatedShape gated_shape(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &weight = call.inputs[1];
  return {x.dims[0], x.dims[1], x.dims[2] * x.dims[3], weight.dims[0]};
}

PanelShape panel_shape(const GatedShape& g) {
  PanelShape shape;
  shape.rows = g.batch * g.pixels;
  shape.k = g.channels;
  shape.cols = g.filters;
  shape.a_bytes = shape.rows * g.channels * 4;
  return shape;
}

/// Pixels times the gate of their image, in `room`: one block of rows at a time.
class GatedRows final : public RowSource {
 public:
  GatedRows(const GatedShape& g, const float* x, int64_t pitch, const float* gate, int64_t gate_pitch, float* room)
      : g_(g), x_(x), pitch_(pitch), gate_(gate), gate_pitch_(gate_pitch), room_(room) {}

  void fetch(int64_t first, int64_t count) const override {
    first_ = first;
    static const BlockFunction multiply = block_function(ops::Function::mul);
    Block block{};
    block.cols = g_.channels;
    block.ld_in = pitch_;
    block.ld_out = g_.channels;
    block.col_step = 1;
    for (int64_t done = 0; done < count;) {
      const int64_t row = first + done, image = row / g_.pixels;
      block.rows = std::min(count - done, (image + 1) * g_.pixels - row);
      block.in = x_ + row * pitch_;
      block.operand = gate_ + image * gate_pitch_;
      block.out = room_ + done * g_.channels;
      multiply(block);
      done += block.rows;
    }
  }
  void fill(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
    for (int64_t r = 0; r < count; ++r) fill_even(first + r, 1, table + r, stride);
  }
  int64_t fill_even(int64_t first, int64_t /*count*/, const std::byte** table, int64_t /*stride*/) const override {
    table[0] = reinterpret_cast<const std::byte*>(room_ + (first - first_) * g_.channels);
    return g_.channels * 4;
  }

 private:
  const GatedShape& g_;
  const float* x_;
  int64_t pitch_;
  const float* gate_;
  int64_t gate_pitch_;
  float* room_;
  mutable int64_t first_ = 0;  // that stands in `room`
};

class GatedConv final : public Kernel {
 public:
  explicit GatedConv(const KernelCall& call)
      : g_(gated_shape(call)),
        product_(panel_shape(g_), EpiloguePlan(call, call.outputs[0])),
        bias_(call.params.integer("bias", 0) != 0),
        in_pitch_(call.inputs[0].pitch_elems),
        gate_pitch_(call.inputs[2].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        room_bytes_((product_.block_rows() * g_.channels * 4 + 63) / 64 * 64) {}

  int64_t scratch_bytes(int threads) const override { return threads * bytes_per_thread(); }
  bool serial() const override { return product_.shape().rows * g_.channels * g_.filters < 32768; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    std::byte* scratch = context.scratch + context.thread * bytes_per_thread();
    const GatedRows rows(g_, floats(inputs[0]), in_pitch_, floats(inputs[2]), gate_pitch_,
                         reinterpret_cast<float*>(scratch));
    PanelRun run = product_.run_on(inputs, inputs[1], bias_ ? inputs[3] : nullptr, outputs[0], out_pitch_);
    run.source = &rows;
    product_.run(run, context.thread, context.threads, scratch + room_bytes_);
  }

 private:
  int64_t bytes_per_thread() const { return room_bytes_ + product_.scratch_bytes_per_thread(); }

  GatedShape g_;
  PanelProduct product_;
  bool bias_;
  int64_t in_pitch_, gate_pitch_, out_pitch_;
  int64_t room_bytes_;
};

Refusal serves_nhwc_gated(const KernelCall& call) { return Terms("gated_conv2d", call).steps_on_rows(); }

std::unique_ptr<Kernel> make_nhwc_gated(const KernelCall& call) { return std::make_unique<GatedConv>(call); }

}  // namespace

Refusal serves_gated_conv2d(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &weight = call.inputs[1], &gate = call.inputs[2], &y = call.outputs[0];
  const bool fits = x.rank == 4 && weight.rank == 4 && gate.rank == 4 && y.rank == 4 && weight.dims[1] == x.dims[1] &&
                    weight.dims[2] == 1 && weight.dims[3] == 1 && gate.dims[0] == x.dims[0] &&
                    gate.dims[1] == x.dims[1] && gate.dims[2] == 1 && gate.dims[3] == 1;
  return Terms("gated_conv2d", call)
      .of(DType::f32, call.params.integer("bias", 0) != 0 ? 4 : 3)
      .hold(fits, "takes x [N,C,H,W], weight [M,C,1,1] and gate [N,C,1,1]; got ", view_text(x), ", ", view_text(weight),
            ", ", view_text(gate), " for the output ", view_text(y))
      .hold(serves_with_nhwc(call, serves_nhwc_gated));
}

std::unique_ptr<Kernel> make_gated_conv2d(const KernelCall& call) { return make_with_nhwc(call, make_nhwc_gated); }

int64_t packed_gated_conv2d_bytes(const KernelCall& call, int /*input*/) {
  return panel_shape(gated_shape(call)).packed_bytes();
}

std::vector<std::byte> pack_gated_conv2d(const KernelCall& call, int input, std::span<const std::byte> weight) {
  HETNN_ASSERT(input == 1, "gated_conv2d packs input 1 only; got ", input);
  const PanelShape shape = panel_shape(gated_shape(call));
  std::vector<std::byte> packed(static_cast<size_t>(shape.packed_bytes()));
  pack_panels(shape, floats(weight.data()), {shape.cols * shape.k, shape.k, 1, 1},
              reinterpret_cast<float*>(packed.data()));
  return packed;
}

}  // namespace hetnn::kernels
