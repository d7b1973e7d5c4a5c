// max_pool_indices: where in its plane the largest value of every window stands.
#include <algorithm>
#include <array>

#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/pool/pool.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

// Channels of a pixel that are compared side by side.
constexpr int64_t kChannels = 64;

class MaxPoolIndices final : public Kernel {
 public:
  MaxPoolIndices(const KernelCall& call, const WindowGeometry& g) : g_(g), x_(call.inputs[0]) {}

  bool serial() const override { return g_.out_pixels() * g_.channels * g_.taps() < 8192; }

  // A thread has whole lines of the result: of images, or of their planes.
  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    auto* places = reinterpret_cast<int64_t*>(outputs[0]);
    const bool pixels = x_.layout == Layout::nhwc;
    const Share lines =
        share_of(g_.batch * (pixels ? 1 : g_.channels) * g_.out_height, context.thread, context.threads);
    for (int64_t line = lines.begin; line < lines.end; ++line) {
      const int64_t outer = line / g_.out_height, oy = line % g_.out_height;
      if (pixels) {
        run_pixels(x + outer * g_.height * g_.width * x_.pitch_elems, oy,
                   places + (outer * g_.channels * g_.out_height + oy) * g_.out_width);
      } else {
        run_plane(x + outer * g_.height * g_.width, oy, places + line * g_.out_width);
      }
    }
  }

 private:
  // NaN wins, and the last of them; else the first of equals.
  static bool is_better(float value, float than) { return value > than || value != value; }

  /// f(element of the plane) for each tap of a window, line by line.
  template <typename F>
  void for_taps(int64_t oy, int64_t ox, const F& f) const {
    const ops::Interval down = g_.rows.taps(oy, g_.height), across = g_.columns.taps(ox, g_.width);
    for (int64_t ky = down.begin; ky < down.end; ++ky) {
      const int64_t y = g_.rows.begin(oy) + ky * g_.rows.dilation;
      for (int64_t kx = across.begin; kx < across.end; ++kx)
        f(y * g_.width + g_.columns.begin(ox) + kx * g_.columns.dilation);
    }
  }

  // Of a window that meets nothing, too.
  int64_t first_tap(int64_t oy, int64_t ox) const {
    const auto of = [](const ops::WindowAxis& axis, int64_t at, int64_t size) {
      return axis.begin(at) + axis.taps(at, size).begin * axis.dilation;
    };
    return of(g_.rows, oy, g_.height) * g_.width + of(g_.columns, ox, g_.width);
  }

  void run_plane(const float* x, int64_t oy, int64_t* places) const {
    for (int64_t ox = 0; ox < g_.out_width; ++ox) {
      int64_t best = first_tap(oy, ox);
      for_taps(oy, ox, [&](int64_t at) { best = is_better(x[at], x[best]) ? at : best; });
      places[ox] = best;
    }
  }

  // All channels of an image.
  void run_pixels(const float* x, int64_t oy, int64_t* places) const {
    std::array<float, kChannels> best;
    std::array<int32_t, kChannels> at;
    const int64_t plane = g_.out_height * g_.out_width;
    for (int64_t first = 0; first < g_.channels; first += kChannels) {
      const auto count = static_cast<size_t>(std::min(kChannels, g_.channels - first));
      for (int64_t ox = 0; ox < g_.out_width; ++ox) {
        const int64_t start = first_tap(oy, ox);
        at.fill(static_cast<int32_t>(start));
        for_taps(oy, ox, [&](int64_t element) {
          const float* from = x + element * x_.pitch_elems + first;
          const auto place = static_cast<int32_t>(element);
          if (element == start) std::copy_n(from, count, best.begin());
          for (size_t c = 0; c < count; ++c) {
            const bool takes = is_better(from[c], best[c]);
            best[c] = takes ? from[c] : best[c];
            at[c] = takes ? place : at[c];
          }
        });
        for (size_t c = 0; c < count; ++c) places[(first + static_cast<int64_t>(c)) * plane + ox] = at[c];
      }
    }
  }

  WindowGeometry g_;
  TensorView x_;
};

WindowGeometry geometry_of(const KernelCall& call) { return pool_geometry(call, call.inputs[0], call.outputs[0]); }

}  // namespace

Refusal serves_max_pool_indices(const KernelCall& call) {
  constexpr int64_t kMostPixels = int64_t{1} << 31;
  const TensorView& x = call.inputs[0];
  return Terms("max_pool_indices", call)
      .is(x, DType::f32, "the image")
      .hold(refuse_windows(call))
      .hold(x.rank != 4 || x.dims[2] * x.dims[3] < kMostPixels, "takes planes below 2^31 elements; got ", view_text(x));
}

std::unique_ptr<Kernel> make_max_pool_indices(const KernelCall& call) {
  return std::make_unique<MaxPoolIndices>(call, geometry_of(call));
}

}  // namespace hetnn::kernels
