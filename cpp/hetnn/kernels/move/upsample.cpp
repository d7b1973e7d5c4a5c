// upsample_nearest2d and upsample_bilinear2d over nhwc pixels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

struct Scales {
  double h = 0, w = 0;  // input steps per output step
};

// Input pixels per output pixel: the inverse of the given scale, else the ratio of the sizes, as in torch.
double step_of(double scale, int64_t in, int64_t out) {
  return scale > 0 ? 1.0 / scale : static_cast<double>(in) / static_cast<double>(out);
}

void check_upsample(std::string_view op, const KernelCall& call) {
  if (call.inputs.size() != 1 || call.outputs.size() != 1)
    throw InvalidModel(text(op, " takes x and gives one output. Check the call against kernels/move/move.h."));
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  if (x.rank != 4 || y.rank != 4 || x.dims[0] != y.dims[0] || x.dims[1] != y.dims[1] || x.dtype != y.dtype)
    throw InvalidModel(text(op, ": x and the output must be [N,C,H,W] with one N and C; got ", view_text(x), " and ",
                            view_text(y), ". Infer the output's shape."));
  const size_t count = call.params.reals("scales", {}).size();
  if (count != 0 && count != 2)
    throw InvalidModel(text(op, ": parameter scales must have 0 or 2 values; got ", count, ". Give height and width."));
}

Scales steps_of(const KernelCall& call) {
  const std::vector<double> scales = call.params.reals("scales", {});
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  return {step_of(scales.empty() ? 0 : scales[0], x.dims[2], y.dims[2]),
          step_of(scales.empty() ? 0 : scales[1], x.dims[3], y.dims[3])};
}

class UpsampleNearest final : public Kernel {
 public:
  explicit UpsampleNearest(const KernelCall& call)
      : x_(call.inputs[0]), y_(call.outputs[0]), width_(dtype_bytes(x_.dtype)) {
    const Scales steps = steps_of(call);
    // Single precision, because that is what decides ties in torch.
    for (int64_t i = 0; i < y_.dims[2]; ++i) rows_.push_back(nearest(i, steps.h, x_.dims[2]));
    for (int64_t i = 0; i < y_.dims[3]; ++i) cols_.push_back(nearest(i, steps.w, x_.dims[3]));
  }

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
    }
  }

 private:
  static int64_t nearest(int64_t i, double step, int64_t size) {
    return std::min<int64_t>(static_cast<int64_t>(std::floor(static_cast<float>(i) * static_cast<float>(step))),
                             size - 1);
  }
  TensorView x_, y_;
  int64_t width_;
  std::vector<int64_t> rows_, cols_;
};

/// y = weighted mean of the four neighbours; the weights of an axis are computed once.
class UpsampleBilinear final : public Kernel {
 public:
  explicit UpsampleBilinear(const KernelCall& call) : x_(call.inputs[0]), y_(call.outputs[0]) {
    const bool align = call.params.integer("align_corners", 0) != 0;
    const Scales steps = steps_of(call);
    rows_ = axis_taps(x_.dims[2], y_.dims[2], align, steps.h);
    cols_ = axis_taps(x_.dims[3], y_.dims[3], align, steps.w);
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const int64_t out_h = y_.dims[2], out_w = y_.dims[3], channels = x_.dims[1];
    const Share share = share_of(y_.dims[0] * out_h, context.thread, context.threads);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const Tap& v = rows_[static_cast<size_t>(row % out_h)];
      const auto* image =
          reinterpret_cast<const float*>(inputs[0]) + row / out_h * x_.dims[2] * x_.dims[3] * x_.pitch_elems;
      const float* top = image + v.low * x_.dims[3] * x_.pitch_elems;
      const float* bottom = image + v.high * x_.dims[3] * x_.pitch_elems;
      float* to = reinterpret_cast<float*>(outputs[0]) + row * out_w * y_.pitch_elems;
      for (int64_t col = 0; col < out_w; ++col, to += y_.pitch_elems) {
        const Tap& h = cols_[static_cast<size_t>(col)];
        const float* a = top + h.low * x_.pitch_elems;
        const float* b = top + h.high * x_.pitch_elems;
        const float* c = bottom + h.low * x_.pitch_elems;
        const float* d = bottom + h.high * x_.pitch_elems;
        for (int64_t i = 0; i < channels; ++i)
          to[i] = (1 - v.weight) * ((1 - h.weight) * a[i] + h.weight * b[i]) +
                  v.weight * ((1 - h.weight) * c[i] + h.weight * d[i]);
      }
    }
  }

 private:
  struct Tap {
    int64_t low, high;
    float weight;  // of high
  };

  static std::vector<Tap> axis_taps(int64_t in, int64_t out, bool align, double step) {
    std::vector<Tap> taps;
    const double aligned = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
    for (int64_t i = 0; i < out; ++i) {
      const float at = align ? static_cast<float>(aligned) * static_cast<float>(i)
                             : std::max(0.0f, static_cast<float>(step) * (static_cast<float>(i) + 0.5f) - 0.5f);
      const int64_t low = std::min<int64_t>(static_cast<int64_t>(at), in - 1);
      taps.push_back({low, std::min(low + 1, in - 1), std::clamp(at - static_cast<float>(low), 0.0f, 1.0f)});
    }
    return taps;
  }

  TensorView x_, y_;
  std::vector<Tap> rows_, cols_;
};

std::unique_ptr<Kernel> make_nhwc_nearest(const KernelCall& call) { return std::make_unique<UpsampleNearest>(call); }
std::unique_ptr<Kernel> make_nhwc_bilinear(const KernelCall& call) { return std::make_unique<UpsampleBilinear>(call); }

}  // namespace

std::unique_ptr<Kernel> make_upsample_nearest2d(const KernelCall& call) {
  check_upsample("upsample_nearest2d", call);
  return make_with_nhwc(call, make_nhwc_nearest);
}

std::unique_ptr<Kernel> make_upsample_bilinear2d(const KernelCall& call) {
  check_upsample("upsample_bilinear2d", call);
  require_f32(call.inputs[0], "upsample_bilinear2d: x");
  return make_with_nhwc(call, make_nhwc_bilinear);
}

}  // namespace hetnn::kernels
