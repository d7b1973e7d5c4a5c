// max, average and adaptive average pooling.
#include "hetnn/kernels/pool/pool.h"

#include <algorithm>
#include <cstring>

#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/pool/window_ops.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {
namespace {

enum class PoolKind { max, average };

// What a pool knows of the type of its elements.
struct Elements {
  PoolFunction reduce;
  int64_t bytes;
  uint32_t of_none;  // the bits of the result of no pixels

  void fill(std::byte* out, int64_t count) const {
    for (; count > 0; --count, out += bytes) std::memcpy(out, &of_none, static_cast<size_t>(bytes));
  }
};

Elements elements_of(PoolKind kind, DType dtype) {
  const PoolTable& table = pool_table();
  if (kind == PoolKind::average) return {table.sum, 4, 0};
  switch (dtype) {
    case DType::f16:
      return {table.max_halves, 2, 0xFC00};
    case DType::bf16:
      return {table.max_halves, 2, 0xFF80};
    case DType::i8:
      return {table.max_bytes, 1, 0x80};
    default:
      return {table.max, 4, 0xFF800000};
  }
}

/// Of f32; the largest of i8, f16 and bf16, too.
class Pool final : public Kernel {
 public:
  Pool(PoolKind kind, const KernelCall& call, const WindowGeometry& g)
      : kind_(kind),
        g_(g),
        count_include_pad_(call.params.integer("count_include_pad", 1) != 0),
        divisor_override_(call.params.integer("divisor_override", 0)),
        epilogue_(call, call.outputs[0]),
        elements_(elements_of(kind, call.inputs[0].dtype)),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        inner_{g.columns.windows(0, g.out_width, g.width).begin,
               g.columns.windows(g.columns.kernel - 1, g.out_width, g.width).end} {}

  bool serial() const override { return g_.out_pixels() * g_.channels * g_.taps() < 16384; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const int64_t bytes = elements_.bytes;
    const Share share = share_of(g_.batch * g_.out_height, context.thread, context.threads);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const int64_t n = row / g_.out_height;
      const int64_t oy = row % g_.out_height, iy = g_.rows.begin(oy);
      const ops::Interval cut_y = g_.rows.taps(oy, g_.height);
      std::byte* const out_row = outputs[0] + row * g_.out_width * out_pitch_ * bytes;
      for (int64_t ox = 0, count = 1; ox < g_.out_width; ox += count) {
        // Windows that no border cuts are alike.
        count = ox >= inner_.begin && ox < inner_.end ? inner_.end - ox : 1;
        const int64_t ix = g_.columns.begin(ox);
        const ops::Interval cut_x = g_.columns.taps(ox, g_.width);
        PoolWindow window{};
        window.out = out_row + ox * out_pitch_ * bytes;
        window.rows = cut_y.end - cut_y.begin;
        window.cols = cut_x.end - cut_x.begin;
        if (window.rows <= 0 || window.cols <= 0) {
          count = 1;
          elements_.fill(window.out, g_.channels);
          continue;
        }
        const int64_t in_row = n * g_.height + iy + cut_y.begin * g_.rows.dilation;
        window.in = inputs[0] + (in_row * g_.width + ix + cut_x.begin * g_.columns.dilation) * in_pitch_ * bytes;
        window.row_stride = g_.rows.dilation * g_.width * in_pitch_;
        window.col_stride = g_.columns.dilation * in_pitch_;
        window.channels = g_.channels;
        window.count = count;
        window.in_step = g_.columns.stride * in_pitch_;
        window.out_step = out_pitch_;
        window.infinity = static_cast<int16_t>(elements_.of_none & 0x7FFF);
        if (kind_ == PoolKind::average)
          window.scale = 1.0f / static_cast<float>(divisor(oy, ox, window.rows * window.cols));
        elements_.reduce(window);
      }
      if (!epilogue_.empty()) {
        epilogue_.apply(reinterpret_cast<float*>(out_row), out_pitch_, g_.out_width, g_.channels, row * g_.out_width, 0,
                        inputs);
      }
    }
  }

 private:
  // With ceil mode a window may reach beyond the padded image; what lies there is never counted, as in torch.
  int64_t divisor(int64_t oy, int64_t ox, int64_t hits) const {
    if (divisor_override_ != 0) return divisor_override_;
    if (!count_include_pad_) return hits;
    return g_.rows.taps(oy, g_.height + g_.rows.after).end * g_.columns.taps(ox, g_.width + g_.columns.after).end;
  }

  PoolKind kind_;
  WindowGeometry g_;
  bool count_include_pad_;
  int64_t divisor_override_;
  EpiloguePlan epilogue_;
  Elements elements_;
  int64_t in_pitch_, out_pitch_;
  Share inner_;  // windows that reach over neither end of a row
};

/// Output cell i of an axis covers [floor(i * size / cells), ceil((i + 1) * size / cells)).
class AdaptivePool final : public Kernel {
 public:
  AdaptivePool(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        epilogue_(call, call.outputs[0]),
        table_(&pool_table()),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems) {}

  bool serial() const override { return g_.batch * g_.height * g_.width * g_.channels < 16384; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    auto* y = reinterpret_cast<float*>(outputs[0]);
    // Split by channels too: a global pool has a single output pixel per image.
    const int64_t blocks = (g_.channels + 63) / 64;
    const Share share = share_of(g_.out_pixels() * blocks, context.thread, context.threads);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t pixel = item / blocks, channel = item % blocks * 64;
      const int64_t ox = pixel % g_.out_width, oy = pixel / g_.out_width % g_.out_height;
      const int64_t n = pixel / (g_.out_width * g_.out_height);
      const int64_t y0 = oy * g_.height / g_.out_height, x0 = ox * g_.width / g_.out_width;
      const int64_t y1 = ((oy + 1) * g_.height + g_.out_height - 1) / g_.out_height;
      const int64_t x1 = ((ox + 1) * g_.width + g_.out_width - 1) / g_.out_width;
      PoolWindow window{};
      window.in = reinterpret_cast<const std::byte*>(x + ((n * g_.height + y0) * g_.width + x0) * in_pitch_ + channel);
      window.row_stride = g_.width * in_pitch_;
      window.col_stride = in_pitch_;
      window.rows = y1 - y0;
      window.cols = x1 - x0;
      float* const out = y + pixel * out_pitch_ + channel;
      window.out = reinterpret_cast<std::byte*>(out);
      window.channels = std::min<int64_t>(64, g_.channels - channel);
      window.scale = 1.0f / static_cast<float>(window.rows * window.cols);
      table_->sum(window);
      if (!epilogue_.empty()) epilogue_.apply(out, out_pitch_, 1, window.channels, pixel, channel, inputs);
    }
  }

 private:
  WindowGeometry g_;
  EpiloguePlan epilogue_;
  const PoolTable* table_;
  int64_t in_pitch_, out_pitch_;
};

template <PoolKind kind>
std::unique_ptr<Kernel> make_nhwc_pool(const KernelCall& call) {
  return std::make_unique<Pool>(kind, call, pool_geometry(call, call.inputs[0], call.outputs[0]));
}

std::unique_ptr<Kernel> make_nhwc_adaptive_pool(const KernelCall& call) {
  const Params none;
  const KernelCall bare{call.inputs, call.outputs, none};
  return std::make_unique<AdaptivePool>(call, window_geometry(bare, call.inputs[0], call.outputs[0], 1, 1));
}

}  // namespace

namespace {

Refusal serves_nhwc_pool(const KernelCall& call) { return Terms("pooling", call).steps_on_rows(); }

}  // namespace

Refusal serves_pool2d(const KernelCall& call) {
  return Terms("pooling", call).of(DType::f32, 1).hold(refuse_windows(call)).then([&] {
    return serves_with_nhwc(call, serves_nhwc_pool);
  });
}

Refusal serves_integer_max_pool2d(const KernelCall& call) {
  const auto same = [&](const std::string& what) {
    return call.params.has("x." + what) && call.params.has("y." + what) &&
           call.params.attrs().at("x." + what) == call.params.attrs().at("y." + what);
  };
  return Terms("max_pool2d_i8", call)
      .of(DType::i8, 1)
      .hold(same("scales") && same("zeros"), "keeps the scale of its input")
      .hold(refuse_windows(call));
}

Refusal serves_half_max_pool2d(const KernelCall& call) {
  const DType dtype = call.inputs[0].dtype;
  return Terms("max_pool2d_f16", call)
      .hold(is_narrow_float(dtype), "takes f16 or bf16; got ", dtype_name(dtype))
      .of(dtype, 1)
      .hold(refuse_windows(call));
}

std::unique_ptr<Kernel> make_max_pool2d(const KernelCall& call) {
  return make_with_nhwc(call, make_nhwc_pool<PoolKind::max>);
}
std::unique_ptr<Kernel> make_avg_pool2d(const KernelCall& call) {
  return make_with_nhwc(call, make_nhwc_pool<PoolKind::average>);
}
std::unique_ptr<Kernel> make_adaptive_avg_pool2d(const KernelCall& call) {
  return make_with_nhwc(call, make_nhwc_adaptive_pool);
}
namespace {

// In the time of so many multiply-adds of vectors one of a window's pixel joins the sum or the largest so far: of four
// that are computed together, and of one alone, which waits for the pixel before.
struct Join {
  double together, alone;
};
constexpr Join kSum = {0.8, 1.7}, kMax = {1.3, 2.7};

// Windows of so many pixels in all, from which so many outputs are made.
Work windows_work(const KernelCall& call, const Machine& machine, double pixels, double outputs, const Join& join) {
  constexpr double kOutput = 8;  // a vector of an output begins and ends
  constexpr int64_t kTogether = 4;
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const auto vectors = static_cast<int64_t>(vectors_of(y.dims[1] * dtype_bytes(x.dtype) / dtype_bytes(DType::f32)));
  // Lines of the cache hold what lies between the pixels, too.
  const auto bytes = static_cast<double>(x.span_bytes() + y.span_bytes());
  Work work = Work().fetch(bytes, bytes, machine);
  const int64_t alone = vectors % kTogether;
  const double joins = static_cast<double>(vectors - alone) * join.together + static_cast<double>(alone) * join.alone;
  work.multiplies = pixels * joins + outputs * kOutput * static_cast<double>(vectors);
  return work;
}

template <PoolKind kind>
Work pool_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  const WindowGeometry g = pool_geometry(call, call.inputs[0], call.outputs[0]);
  const auto outputs = static_cast<double>(g.out_pixels());
  Work work = windows_work(call, machine, outputs * static_cast<double>(g.taps()), outputs,
                           kind == PoolKind::max ? kMax : kSum);
  work.grains = std::max<int64_t>(1, g.batch * g.out_height);
  return work;
}

Work adaptive_pool_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  // Pixels of all cells along an axis: neighbours may share one.
  const auto covered = [](int64_t size, int64_t cells) {
    int64_t out = 0;
    for (int64_t cell = 0; cell < cells; ++cell) out += ((cell + 1) * size + cells - 1) / cells - cell * size / cells;
    return static_cast<double>(out);
  };
  const auto images = static_cast<double>(y.dims[0]);
  const double outputs = images * static_cast<double>(y.dims[2] * y.dims[3]);
  Work work = windows_work(call, machine, images * covered(x.dims[2], y.dims[2]) * covered(x.dims[3], y.dims[3]),
                           outputs, kSum);
  work.grains = std::max<int64_t>(1, y.dims[0] * y.dims[2] * y.dims[3] * ((y.dims[1] + 63) / 64));
  return work;
}

}  // namespace

std::span<const Variant> pool_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "max_pool2d",
       .op = "max_pool2d",
       .speed = "pool",
       .serves = serves_pool2d,
       .create = make_max_pool2d,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .work = pool_work<PoolKind::max>},
      {.name = "max_pool2d_i8",
       .op = "max_pool2d",
       .speed = "pool",
       .serves = serves_integer_max_pool2d,
       .create = make_max_pool2d,
       .layout = LayoutWish::channels_last,
       .integers = true,
       .work = pool_work<PoolKind::max>},
      {.name = "max_pool2d_f16",
       .op = "max_pool2d",
       .speed = "pool",
       .serves = serves_half_max_pool2d,
       .create = make_max_pool2d,
       .layout = LayoutWish::channels_last,
       .halves = [](const KernelCall& /*call*/) { return true; },
       .work = pool_work<PoolKind::max>},
      {.name = "max_pool_gradient",
       .op = "max_pool_gradient",
       .speed = "pool",
       .serves = serves_max_pool_gradient,
       .create = make_max_pool_gradient,
       .layout = LayoutWish::channels_last,
       .takes_steps = true},
      {.name = "max_pool_indices",
       .op = "max_pool_indices",
       .speed = "pool",
       .serves = serves_max_pool_indices,
       .create = make_max_pool_indices,
       .layout = LayoutWish::written_plain},
      {.name = "avg_pool2d",
       .op = "avg_pool2d",
       .speed = "pool",
       .serves = serves_pool2d,
       .create = make_avg_pool2d,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .work = pool_work<PoolKind::average>},
      {.name = "adaptive_avg_pool2d",
       .op = "adaptive_avg_pool2d",
       .speed = "pool",
       .serves = serves_pool2d,
       .create = make_adaptive_avg_pool2d,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .work = adaptive_pool_work},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
