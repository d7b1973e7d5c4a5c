// upsample_nearest2d and upsample_bilinear2d over nhwc pixels, those of f32 with steps behind.
#include <cstring>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"
#include "hetnn/kernels/row_view.h"
#include "hetnn/ops/resample.h"

namespace hetnn::kernels {
namespace {

Refusal serves_upsample(std::string_view name, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  Terms terms(name, call);
  terms.hold(x.rank == 4, "takes images [N,C,H,W]; got ", view_text(x))
      .hold(call.steps.empty() || x.dtype == DType::f32, "takes steps behind f32; got ", dtype_name(x.dtype));
  return terms.met() ? terms.steps_on_rows() : terms;
}
Refusal serves_nhwc_nearest(const KernelCall& call) { return serves_upsample("upsample_nearest2d", call); }
Refusal serves_nhwc_bilinear(const KernelCall& call) { return serves_upsample("upsample_bilinear2d", call); }

// The given scale of height (0) or width (1), else 0.
double scale_of(const KernelCall& call, size_t axis) {
  const std::vector<double> scales = call.params.reals("scales", {});
  return scales.empty() ? 0 : scales[axis];
}

class UpsampleNearest final : public Kernel {
 public:
  explicit UpsampleNearest(const KernelCall& call)
      : x_(call.inputs[0]),
        y_(call.outputs[0]),
        width_(dtype_bytes(x_.dtype)),
        epilogue_(call, y_),
        rows_(ops::nearest_before(x_.dims[2], y_.dims[2], scale_of(call, 0))),
        cols_(ops::nearest_before(x_.dims[3], y_.dims[3], scale_of(call, 1))) {}

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const int64_t out_h = y_.dims[2], out_w = y_.dims[3];
    const Share share = share_of(y_.dims[0] * out_h, context.thread, context.threads);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const int64_t from_row = row / out_h * x_.dims[2] + rows_[static_cast<size_t>(row % out_h)];
      const std::byte* from = inputs[0] + from_row * x_.dims[3] * x_.pitch_elems * width_;
      std::byte* to = outputs[0] + row * out_w * y_.pitch_elems * width_;
      for (int64_t col = 0; col < out_w; ++col)
        std::memcpy(to + col * y_.pitch_elems * width_,
                    from + cols_[static_cast<size_t>(col)] * x_.pitch_elems * width_,
                    static_cast<size_t>(x_.dims[1] * width_));
      if (!epilogue_.empty())
        epilogue_.apply(reinterpret_cast<float*>(to), y_.pitch_elems, out_w, y_.dims[1], row * out_w, 0, inputs);
    }
  }

 private:
  TensorView x_, y_;
  int64_t width_;
  EpiloguePlan epilogue_;
  std::vector<int64_t> rows_, cols_;
};

/// y = weighted mean of the four neighbours; the weights of an axis are computed once.
class UpsampleBilinear final : public Kernel {
 public:
  explicit UpsampleBilinear(const KernelCall& call)
      : x_(call.inputs[0]), y_(call.outputs[0]), epilogue_(call, call.outputs[0]) {
    const bool align = call.params.integer("align_corners", 0) != 0;
    rows_ = ops::linear_taps(x_.dims[2], y_.dims[2], scale_of(call, 0), align);
    cols_ = ops::linear_taps(x_.dims[3], y_.dims[3], scale_of(call, 1), align);
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const int64_t out_h = y_.dims[2], out_w = y_.dims[3], channels = x_.dims[1];
    const Share share = share_of(y_.dims[0] * out_h, context.thread, context.threads);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const ops::LinearTap& v = rows_[static_cast<size_t>(row % out_h)];
      const auto* image =
          reinterpret_cast<const float*>(inputs[0]) + row / out_h * x_.dims[2] * x_.dims[3] * x_.pitch_elems;
      const float* top = image + v.low * x_.dims[3] * x_.pitch_elems;
      const float* bottom = image + v.high * x_.dims[3] * x_.pitch_elems;
      float* to = reinterpret_cast<float*>(outputs[0]) + row * out_w * y_.pitch_elems;
      for (int64_t col = 0; col < out_w; ++col, to += y_.pitch_elems) {
        const ops::LinearTap& h = cols_[static_cast<size_t>(col)];
        const float* a = top + h.low * x_.pitch_elems;
        const float* b = top + h.high * x_.pitch_elems;
        const float* c = bottom + h.low * x_.pitch_elems;
        const float* d = bottom + h.high * x_.pitch_elems;
        for (int64_t i = 0; i < channels; ++i)
          to[i] = (1 - v.weight) * ((1 - h.weight) * a[i] + h.weight * b[i]) +
                  v.weight * ((1 - h.weight) * c[i] + h.weight * d[i]);
      }
      if (!epilogue_.empty())
        epilogue_.apply(to - out_w * y_.pitch_elems, y_.pitch_elems, out_w, channels, row * out_w, 0, inputs);
    }
  }

 private:
  TensorView x_, y_;
  EpiloguePlan epilogue_;
  std::vector<ops::LinearTap> rows_, cols_;
};

std::unique_ptr<Kernel> make_nhwc_nearest(const KernelCall& call) { return std::make_unique<UpsampleNearest>(call); }
std::unique_ptr<Kernel> make_nhwc_bilinear(const KernelCall& call) { return std::make_unique<UpsampleBilinear>(call); }

}  // namespace

Refusal serves_upsample_nearest2d(const KernelCall& call) { return serves_with_nhwc(call, serves_nhwc_nearest); }

std::unique_ptr<Kernel> make_upsample_nearest2d(const KernelCall& call) {
  return make_with_nhwc(call, make_nhwc_nearest);
}

Refusal serves_upsample_bilinear2d(const KernelCall& call) {
  return Terms("upsample_bilinear2d", call).of(DType::f32, 1).hold(serves_with_nhwc(call, serves_nhwc_bilinear));
}

Work upsample_bilinear2d_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  constexpr double kMean = 13;  // in the time of so many multiply-adds of vectors one becomes the mean of four
  const TensorView& y = call.outputs[0];
  const double bytes = bytes_of(call.inputs.first(1)) + bytes_of(call.outputs);
  Work work = Work().fetch(bytes, bytes, machine);
  work.multiplies = vectors_of(y.dims[1]) * static_cast<double>(y.dims[0] * y.dims[2] * y.dims[3]) * kMean;
  work.grains = std::max<int64_t>(1, y.dims[0] * y.dims[2]);
  return work;
}

std::unique_ptr<Kernel> make_upsample_bilinear2d(const KernelCall& call) {
  return make_with_nhwc(call, make_nhwc_bilinear);
}

}  // namespace hetnn::kernels
