// max_pool_gradient: every window gives its gradient to its largest element.
#include <algorithm>

#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/pool/pool.h"
#include "hetnn/kernels/pool/window_ops.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

class MaxPoolGradient final : public Kernel {
 public:
  MaxPoolGradient(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        epilogue_(call, call.outputs[0]),
        table_(&pool_table()),
        in_pitch_(call.inputs[0].pitch_elems),
        gradient_pitch_(call.inputs[1].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems) {
    const auto apart = [](const ops::WindowAxis& axis) { return axis.stride >= axis.reach(); };
    const auto covers = [](const ops::WindowAxis& axis, int64_t windows, int64_t size) {
      return axis.stride == axis.kernel && axis.dilation == 1 && axis.before == 0 && windows * axis.stride >= size;
    };
    by_lines_ = apart(g.rows);
    stores_ = covers(g.rows, g.out_height, g.height) && covers(g.columns, g.out_width, g.width);
  }

  bool serial() const override { return g_.out_pixels() * g_.channels * g_.taps() < 8192; }

  // A thread has whole images, or where windows do not overlap the lines under some lines of windows.
  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    const auto* gradient = reinterpret_cast<const float*>(inputs[1]);
    auto* y = reinterpret_cast<float*>(outputs[0]);
    const int64_t parts = by_lines_ ? std::max<int64_t>(1, g_.out_height) : 1;
    const Share share = share_of(g_.batch * parts, context.thread, context.threads);
    for (int64_t unit = share.begin; unit < share.end; ++unit) {
      const int64_t n = unit / parts, part = unit % parts;
      const int64_t begin = part == 0 ? 0 : std::clamp<int64_t>(g_.rows.begin(part), 0, g_.height);
      const int64_t end = part + 1 == parts ? g_.height : std::clamp<int64_t>(g_.rows.begin(part + 1), 0, g_.height);
      float* out = y + (n * g_.height + begin) * g_.width * out_pitch_;
      if (!stores_) clear(out, (end - begin) * g_.width);
      const int64_t first = by_lines_ ? part : 0, last = by_lines_ ? std::min(part + 1, g_.out_height) : g_.out_height;
      for (int64_t oy = first; oy < last; ++oy) route(n, oy, gradient, x, y);
      if (!epilogue_.empty())
        epilogue_.apply(out, out_pitch_, (end - begin) * g_.width, g_.channels, (n * g_.height + begin) * g_.width, 0,
                        inputs);
    }
  }

 private:
  void clear(float* out, int64_t pixels) const {
    if (out_pitch_ == g_.channels) {
      std::fill_n(out, pixels * out_pitch_, 0.0f);
      return;
    }
    for (int64_t pixel = 0; pixel < pixels; ++pixel) std::fill_n(out + pixel * out_pitch_, g_.channels, 0.0f);
  }

  // A line of windows.
  void route(int64_t n, int64_t oy, const float* gradient, const float* x, float* y) const {
    const ops::Interval down = g_.rows.taps(oy, g_.height);
    for (int64_t ox = 0; ox < g_.out_width; ++ox) {
      const ops::Interval across = g_.columns.taps(ox, g_.width);
      if (down.begin >= down.end || across.begin >= across.end) continue;
      const int64_t at = (n * g_.height + g_.rows.begin(oy) + down.begin * g_.rows.dilation) * g_.width +
                         g_.columns.begin(ox) + across.begin * g_.columns.dilation;
      PoolRoute window{};
      window.in = x + at * in_pitch_;
      window.row_stride = g_.rows.dilation * g_.width * in_pitch_;
      window.col_stride = g_.columns.dilation * in_pitch_;
      window.gradient = gradient + ((n * g_.out_height + oy) * g_.out_width + ox) * gradient_pitch_;
      window.out = y + at * out_pitch_;
      window.out_row_stride = g_.rows.dilation * g_.width * out_pitch_;
      window.out_col_stride = g_.columns.dilation * out_pitch_;
      window.rows = down.end - down.begin;
      window.cols = across.end - across.begin;
      window.channels = g_.channels;
      window.stores = stores_;
      table_->route(window);
    }
  }

  WindowGeometry g_;
  EpiloguePlan epilogue_;
  const PoolTable* table_;
  int64_t in_pitch_, gradient_pitch_, out_pitch_;
  bool by_lines_, stores_;
};

WindowGeometry geometry_of(const KernelCall& call) { return pool_geometry(call, call.inputs[0], call.inputs[1]); }

Refusal serves_pixels(const KernelCall& call) { return Terms("max_pool_gradient", call).steps_on_rows(); }

}  // namespace

Refusal serves_max_pool_gradient(const KernelCall& call) {
  Terms terms("max_pool_gradient", call);
  terms.of(DType::f32, 2).hold(refuse_windows(call));
  return terms.met() ? terms.hold(serves_with_nhwc(call, serves_pixels)) : terms;
}

std::unique_ptr<Kernel> make_max_pool_gradient(const KernelCall& call) {
  return make_with_nhwc(call, [](const KernelCall& pixels) -> std::unique_ptr<Kernel> {
    return std::make_unique<MaxPoolGradient>(pixels, geometry_of(pixels));
  });
}

}  // namespace hetnn::kernels
