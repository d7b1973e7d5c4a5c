// scaled_conv2d: a 1x1 convolution of x scaled a channel: by a gate, one factor an image and channel (squeeze and
// excitation), or by a norm and its relu.
//
// A block of pixels is scaled into scratch, from where the product reads it: the scaled image is never written.
#include <algorithm>
#include <limits>

#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/conv/scaled_ops.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }

int has_bias(const KernelCall& call) { return call.params.integer("bias", 0) != 0 ? 1 : 0; }

struct ScaledShape {
  int64_t batch, channels, pixels, filters;

  // Whole lines, a few more where rows would collide in the first level (gemm/split.h).
  int64_t room_pitch() const {
    const int64_t lines = (channels + 15) / 16;
    return (lines % 64 == 0 ? lines + 1 : lines) * 16;
  }
};

ScaledShape scaled_shape(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &weight = call.inputs[1];
  return {x.dims[0], x.dims[1], x.dims[2] * x.dims[3], weight.dims[0]};
}

PanelShape panel_shape(const ScaledShape& s) {
  PanelShape shape;
  shape.rows = s.batch * s.pixels;
  shape.k = s.channels;
  shape.cols = s.filters;
  shape.a_bytes = shape.rows * s.channels * 4;
  return shape;
}

// Values of the channels, of each image or of all.
struct ChannelValues {
  int input = -1;     // of the call; -1: there are none
  int64_t pitch = 0;  // from image to image

  static ChannelValues of(const KernelCall& call, int input) {
    const TensorView& view = call.inputs[static_cast<size_t>(input)];
    return {input, view.dims[0] == 1 ? 0 : view.pitch_elems};
  }
  const float* in(const std::byte* const* inputs, int64_t image) const {
    return input < 0 ? nullptr : floats(inputs[input]) + image * pitch;
  }
};

struct Scaling {
  ChannelValues scale, shift;
  float lo;

  explicit Scaling(const KernelCall& call)
      : scale(ChannelValues::of(call, 2)),
        lo(call.params.integer("relu", 0) != 0 ? 0 : -std::numeric_limits<float>::infinity()) {
    if (call.params.integer("shift", 0) != 0) shift = ChannelValues::of(call, 3 + has_bias(call));
  }
};

/// Scaled pixels, in `room`: one block of rows at a time.
class ScaledRows final : public RowSource {
 public:
  ScaledRows(const ScaledShape& s, const Scaling& scaling, const std::byte* const* inputs, int64_t pitch, float* room)
      : s_(s), scaling_(scaling), inputs_(inputs), pitch_(pitch), room_(room) {}

  void fetch(int64_t first, int64_t count) const override {
    first_ = first;
    ScaledBlock block{};
    block.cols = s_.channels;
    block.ld_in = pitch_;
    block.ld_out = s_.room_pitch();
    block.lo = scaling_.lo;
    for (int64_t done = 0; done < count; done += block.rows) {
      const int64_t row = first + done, image = row / s_.pixels;
      block.rows = std::min(count - done, (image + 1) * s_.pixels - row);
      block.in = floats(inputs_[0]) + row * pitch_;
      block.out = room_ + done * s_.room_pitch();
      block.scale = scaling_.scale.in(inputs_, image);
      block.shift = scaling_.shift.in(inputs_, image);
      scale_rows(block);
    }
  }
  void fill(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
    for (int64_t r = 0; r < count; ++r) fill_even(first + r, 1, table + r, stride);
  }
  int64_t fill_even(int64_t first, int64_t /*count*/, const std::byte** table, int64_t /*stride*/) const override {
    table[0] = reinterpret_cast<const std::byte*>(room_ + (first - first_) * s_.room_pitch());
    return s_.room_pitch() * 4;
  }

 private:
  const ScaledShape& s_;
  const Scaling& scaling_;
  const std::byte* const* inputs_;
  int64_t pitch_;
  float* room_;
  mutable int64_t first_ = 0;  // that stands in `room`
};

class ScaledConv final : public Kernel {
 public:
  explicit ScaledConv(const KernelCall& call)
      : s_(scaled_shape(call)),
        scaling_(call),
        product_(panel_shape(s_), EpiloguePlan(call, call.outputs[0])),
        bias_(has_bias(call) != 0),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        room_bytes_(product_.block_rows() * s_.room_pitch() * 4) {}

  int64_t scratch_bytes(int threads) const override { return threads * bytes_per_thread(); }
  bool serial() const override { return product_.shape().is_small(); }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    std::byte* scratch = context.scratch + context.thread * bytes_per_thread();
    const ScaledRows rows(s_, scaling_, inputs, in_pitch_, reinterpret_cast<float*>(scratch));
    PanelRun run = product_.run_on(inputs, inputs[1], bias_ ? inputs[3] : nullptr, outputs[0], out_pitch_);
    run.source = &rows;
    product_.run(run, context.thread, context.threads, scratch + room_bytes_);
  }

 private:
  int64_t bytes_per_thread() const { return room_bytes_ + product_.scratch_bytes_per_thread(); }

  ScaledShape s_;
  Scaling scaling_;
  PanelProduct product_;
  bool bias_;
  int64_t in_pitch_, out_pitch_;
  int64_t room_bytes_;
};

Refusal serves_nhwc_scaled(const KernelCall& call) { return Terms("scaled_conv2d", call).steps_on_rows(); }

std::unique_ptr<Kernel> make_nhwc_scaled(const KernelCall& call) { return std::make_unique<ScaledConv>(call); }

}  // namespace

Refusal serves_scaled_conv2d(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &weight = call.inputs[1], &scale = call.inputs[2], &y = call.outputs[0];
  const bool has_shift = call.params.integer("shift", 0) != 0;
  const size_t operands = 3 + has_bias(call) + has_shift;
  const auto fits = [&](const TensorView& values) {
    return values.rank == 4 && (values.dims[0] == x.dims[0] || values.dims[0] == 1) && values.dims[1] == x.dims[1] &&
           values.dims[2] == 1 && values.dims[3] == 1;
  };
  Terms terms("scaled_conv2d", call);
  return terms.of(DType::f32, operands)
      .hold(x.rank == 4 && weight.rank == 4 && y.rank == 4 && weight.dims[1] == x.dims[1] && weight.dims[2] == 1 &&
                weight.dims[3] == 1 && fits(scale),
            "takes x [N,C,H,W], weight [M,C,1,1] and scale [N or 1,C,1,1]; got ", view_text(x), ", ", view_text(weight),
            ", ", view_text(scale), " for the output ", view_text(y))
      .then([&]() -> Refusal {
        const TensorView& shift = call.inputs[operands - 1];
        return terms.hold(!has_shift || fits(shift), "takes a shift [N or 1,C,1,1]; got ", view_text(shift));
      })
      .hold(serves_with_nhwc(call, serves_nhwc_scaled));
}

std::unique_ptr<Kernel> make_scaled_conv2d(const KernelCall& call) { return make_with_nhwc(call, make_nhwc_scaled); }

int64_t packed_scaled_conv2d_bytes(const KernelCall& call, int /*input*/) {
  return panel_shape(scaled_shape(call)).packed_bytes();
}

std::vector<std::byte> pack_scaled_conv2d(const KernelCall& call, int input, std::span<const std::byte> weight) {
  HETNN_ASSERT(input == 1, "scaled_conv2d packs input 1 only; got ", input);
  const PanelShape shape = panel_shape(scaled_shape(call));
  std::vector<std::byte> packed(static_cast<size_t>(shape.packed_bytes()));
  pack_panels(shape, floats(weight.data()), {shape.cols * shape.k, shape.k, 1, 1},
              reinterpret_cast<float*>(packed.data()));
  return packed;
}

}  // namespace hetnn::kernels
