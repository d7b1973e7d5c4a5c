// conv_transpose2d as rows.stride * columns.stride ordinary products: outputs of one phase share their taps. Of strides
// of 1 it is a convolution.
#include <algorithm>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/conv/implicit.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/packing.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {
namespace {

// Output (oy, ox) receives input (iy, ix) through tap (ky, kx) when iy * rows.stride = oy + rows.before - ky *
// rows.dilation, and likewise for x. Which taps divide evenly depends on oy mod rows.stride and ox mod columns.stride
// alone: the phase.
struct Phase {
  int64_t x;  // ox mod columns.stride
  std::vector<std::pair<int64_t, int64_t>> taps;
  int64_t packed_offset_elems;
};

// Phase y * columns.stride + x is that of y and x.
std::vector<Phase> phases_of(const WindowGeometry& g) {
  std::vector<Phase> phases;
  const int64_t panels = (g.out_channels / g.groups + kPanel - 1) / kPanel;
  const int64_t tap_elems = g.groups * panels * (g.channels / g.groups) * kPanel;
  int64_t offset = 0;
  for (int64_t y = 0; y < g.rows.stride; ++y) {
    for (int64_t x = 0; x < g.columns.stride; ++x) {
      Phase phase{x, {}, offset};
      for (int64_t ky = 0; ky < g.rows.kernel; ++ky)
        for (int64_t kx = 0; kx < g.columns.kernel; ++kx)
          if ((y + g.rows.before - ky * g.rows.dilation) % g.rows.stride == 0 &&
              (x + g.columns.before - kx * g.columns.dilation) % g.columns.stride == 0)
            phase.taps.emplace_back(ky, kx);
      offset += static_cast<int64_t>(phase.taps.size()) * tap_elems;
      phases.push_back(std::move(phase));
    }
  }
  return phases;
}

WindowGeometry transpose_geometry(const KernelCall& call) {
  const TensorView& weight = call.inputs[1];
  return window_geometry(call, call.inputs[0], call.outputs[0], weight.dims[2], weight.dims[3]);
}

PanelShape phase_shape(const WindowGeometry& g, const Phase& phase) {
  PanelShape shape;
  shape.rows = phase.x < g.out_width ? (g.out_width - phase.x + g.columns.stride - 1) / g.columns.stride : 0;
  shape.taps = static_cast<int64_t>(phase.taps.size());
  shape.k = g.channels / g.groups;
  shape.groups = g.groups;
  shape.cols = g.out_channels / g.groups;
  return shape;
}

class ConvTranspose final : public Kernel {
 public:
  ConvTranspose(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        phases_(phases_of(g)),
        epilogue_(call, call.outputs[0]),
        bias_(call.params.integer("bias", 0) != 0),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        zeros_(static_cast<size_t>(g.channels) * 4) {
    for (const Phase& phase : phases_) {
      products_.emplace_back(phase_shape(g, phase), EpiloguePlan());
      scratch_per_thread_ = std::max(scratch_per_thread_, products_.back().scratch_bytes_per_thread());
    }
  }

  int64_t scratch_bytes(int threads) const override { return threads * scratch_per_thread_; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* out = reinterpret_cast<float*>(outputs[0]);
    const Share share = share_of(g_.batch * g_.out_height, context.thread, context.threads);
    // A row of the image is near while all phases that read it are computed.
    for (int64_t row = share.begin; row < share.end; ++row) {
      const int64_t oy = row % g_.out_height, first = oy % g_.rows.stride * g_.columns.stride;
      for (int64_t number = first; number < first + g_.columns.stride; ++number) {
        const Phase& phase = phases_[static_cast<size_t>(number)];
        const PanelProduct& product = products_[static_cast<size_t>(number)];
        if (product.shape().rows == 0) continue;
        const PhaseRows rows(*this, phase, inputs[0], row / g_.out_height, oy);
        PanelRun run;
        run.source = &rows;
        run.panels = reinterpret_cast<const float*>(inputs[1]) + phase.packed_offset_elems;
        run.bias = bias_ ? reinterpret_cast<const float*>(inputs[2]) : nullptr;
        run.out = out + (row * g_.out_width + phase.x) * out_pitch_;
        run.ld_out = g_.columns.stride * out_pitch_;
        run.inputs = inputs;
        product.run(run, 0, 1, context.scratch + context.thread * scratch_per_thread_);
      }
    }
    if (epilogue_.empty()) return;
    for (int64_t row = share.begin; row < share.end; ++row)
      epilogue_.apply(out + row * g_.out_width * out_pitch_, out_pitch_, g_.out_width, g_.out_channels,
                      row * g_.out_width, 0, inputs);
  }

 private:
  /// One output row of one phase: row r is output column phase.x + r * columns.stride.
  class PhaseRows final : public RowSource {
   public:
    PhaseRows(const ConvTranspose& conv, const Phase& phase, const std::byte* x, int64_t n, int64_t oy)
        : conv_(conv), phase_(phase), x_(x), n_(n), oy_(oy) {}
    void fill(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
      for (size_t tap = 0; tap < phase_.taps.size(); ++tap) {
        const TapRow row = row_of(tap);
        for (int64_t r = 0; r < count; ++r) {
          const int64_t ix = row.x + first + r;
          table[static_cast<int64_t>(tap) * stride + r] = row.holds(ix) ? row.at(ix) : conv_.zeros_.data();
        }
      }
    }
    int64_t fill_even(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
      for (size_t tap = 0; tap < phase_.taps.size(); ++tap) {
        const TapRow row = row_of(tap);
        const int64_t ix = row.x + first;
        if (!row.holds(ix) || !row.holds(ix + count - 1)) {
          fill(first, count, table, stride);
          return 0;
        }
        table[static_cast<int64_t>(tap) * stride] = row.at(ix);
      }
      return conv_.in_pitch_ * 4;
    }

   private:
    // The pixels that a tap reads: of row r of the product the one at x + r.
    struct TapRow {
      const std::byte* pixels;  // null outside the image
      int64_t x, width, pixel_bytes;
      bool holds(int64_t ix) const { return pixels != nullptr && ix >= 0 && ix < width; }
      const std::byte* at(int64_t ix) const { return pixels + ix * pixel_bytes; }
    };
    // The distances are whole numbers of strides, of phases' taps.
    TapRow row_of(size_t tap) const {
      const WindowGeometry& g = conv_.g_;
      const auto [ky, kx] = phase_.taps[tap];
      const int64_t pixel_bytes = conv_.in_pitch_ * 4;
      const int64_t iy = (oy_ + g.rows.before - ky * g.rows.dilation) / g.rows.stride;
      const int64_t ix = (phase_.x + g.columns.before - kx * g.columns.dilation) / g.columns.stride;
      const bool inside = iy >= 0 && iy < g.height;
      return {inside ? x_ + (n_ * g.height + iy) * g.width * pixel_bytes : nullptr, ix, g.width, pixel_bytes};
    }

    const ConvTranspose& conv_;
    const Phase& phase_;
    const std::byte* x_;
    int64_t n_, oy_;
  };

  WindowGeometry g_;
  std::vector<Phase> phases_;
  std::vector<PanelProduct> products_;
  EpiloguePlan epilogue_;
  bool bias_;
  int64_t in_pitch_, out_pitch_;
  int64_t scratch_per_thread_ = 0;
  AlignedBuffer zeros_;
};

// Phase after phase; a part is a panel of one of them.
class PhasePacker final : public Packer {
 public:
  explicit PhasePacker(const WindowGeometry& g) : g_(g), phases_(phases_of(g)) {}

  int64_t packed_bytes() const override {
    int64_t taps = 0;
    for (const Phase& phase : phases_) taps += static_cast<int64_t>(phase.taps.size());
    return panels() * taps * k() * kPanel * 4;
  }
  int64_t parts() const override { return static_cast<int64_t>(phases_.size()) * panels(); }
  void pack(Share parts, const std::byte* weight, std::byte* packed) const override {
    const int64_t group_cols = cols(), taps = g_.taps();
    for (int64_t part = parts.begin; part < parts.end; ++part) {
      const Phase& phase = phases_[static_cast<size_t>(part / panels())];
      const int64_t panel = part % panels(), group = panel / group_panels(), col = panel % group_panels() * kPanel;
      // The weight is [C, O/groups, taps].
      const float* from = reinterpret_cast<const float*>(weight) + (group * k() * group_cols + col) * taps;
      float* to = reinterpret_cast<float*>(packed) + phase.packed_offset_elems +
                  panel * static_cast<int64_t>(phase.taps.size()) * k() * kPanel;
      const int64_t some = std::min(kPanel, group_cols - col);
      for (const auto& [ky, kx] : phase.taps) {
        for (int64_t c = 0; c < k(); ++c, to += kPanel) {
          const float* at = from + c * group_cols * taps + ky * g_.columns.kernel + kx;
          for (int64_t o = 0; o < some; ++o) to[o] = at[o * taps];
          std::fill(to + some, to + kPanel, 0.0f);
        }
      }
    }
  }

 private:
  int64_t k() const { return g_.channels / g_.groups; }
  int64_t cols() const { return g_.out_channels / g_.groups; }
  int64_t group_panels() const { return (cols() + kPanel - 1) / kPanel; }
  int64_t panels() const { return g_.groups * group_panels(); }

  WindowGeometry g_;
  std::vector<Phase> phases_;
};

// Of stride 1 it is a convolution by the kernel turned around, whose padding is what that leaves of its reach.
bool turns_around(const WindowGeometry& g) {
  return g.rows.stride == 1 && g.columns.stride == 1 && g.rows.before < g.rows.reach() &&
         g.columns.before < g.columns.reach();
}

WindowGeometry turned_around(WindowGeometry g) {
  for (ops::WindowAxis* axis : {&g.rows, &g.columns}) axis->before = axis->reach() - 1 - axis->before;
  return g;
}

Refusal serves_steps(const KernelCall& call) { return Terms("conv_transpose2d", call).steps_on_rows(); }

Refusal serves_phases(const KernelCall& call) {
  constexpr int64_t kMostPhases = 4096;
  Terms terms("conv_transpose2d_phases", call);
  return terms.hold(serves_windows("conv_transpose2d_phases", call))
      .then([&] {
        const WindowGeometry g = transpose_geometry(call);
        const int64_t high = g.rows.stride, wide = g.columns.stride;
        return terms.hold(high <= kMostPhases && wide <= kMostPhases && high * wide <= kMostPhases,
                          "takes strides of at most ", kMostPhases, " phases; got ", high, "x", wide);
      })
      .then([&] { return serves_with_nhwc(call, serves_steps); });
}

Refusal serves_direct(const KernelCall& call) {
  Terms terms("conv_transpose2d_direct", call);
  return terms.hold(serves_windows("conv_transpose2d_direct", call))
      .then([&] {
        const WindowGeometry g = transpose_geometry(call);
        return terms.hold(turns_around(g), "takes strides of 1 and padding less than the window; got strides ",
                          g.rows.stride, "x", g.columns.stride, ", padding ", g.rows.before, ", ", g.columns.before);
      })
      .then([&] { return serves_with_nhwc(call, serves_steps); });
}

std::unique_ptr<Kernel> make_nhwc_phases(const KernelCall& call) {
  return std::make_unique<ConvTranspose>(call, transpose_geometry(call));
}
std::unique_ptr<Kernel> make_nhwc_direct(const KernelCall& call) {
  return make_implicit_conv(call, turned_around(transpose_geometry(call)));
}
std::unique_ptr<Kernel> make_phases(const KernelCall& call) { return make_with_nhwc(call, make_nhwc_phases); }
std::unique_ptr<Kernel> make_direct(const KernelCall& call) { return make_with_nhwc(call, make_nhwc_direct); }

std::unique_ptr<Packer> make_phase_packer(const KernelCall& call, int /*input*/) {
  return std::make_unique<PhasePacker>(transpose_geometry(call));
}
std::unique_ptr<Packer> make_turned_packer(const KernelCall& call, int /*input*/) {
  const WindowGeometry g = transpose_geometry(call);
  const PanelShape shape = direct_shape(g);
  const int64_t taps = g.taps(), k_stride = shape.cols * taps;
  return std::make_unique<PanelPacker>(shape, PackStrides{shape.k * k_stride, taps, -1, k_stride}, taps - 1);
}

Work work_of_phases(const KernelCall& call, const Machine& machine, int /*threads*/) {
  return phases_work(call, transpose_geometry(call), machine);
}
Work work_of_direct(const KernelCall& call, const Machine& machine, int /*threads*/) {
  return direct_work_of(call, turned_around(transpose_geometry(call)), machine);
}

}  // namespace

std::span<const Variant> conv_transpose2d_rows() {
  static constexpr Variant kVariants[] = {{.name = "conv_transpose2d_phases",
                                           .op = "conv_transpose2d",
                                           .speed = "conv",
                                           .serves = serves_phases,
                                           .create = make_phases,
                                           .layout = LayoutWish::channels_last,
                                           .takes_steps = true,
                                           .is_weight = is_conv_weight,
                                           .pack = pack_with<make_phase_packer>,
                                           .packed_bytes = packed_bytes_with<make_phase_packer>,
                                           .packer = make_phase_packer,
                                           .work = work_of_phases},
                                          {.name = "conv_transpose2d_direct",
                                           .op = "conv_transpose2d",
                                           .speed = "conv",
                                           .serves = serves_direct,
                                           .create = make_direct,
                                           .layout = LayoutWish::channels_last,
                                           .takes_steps = true,
                                           .is_weight = is_conv_weight,
                                           .pack = pack_with<make_turned_packer>,
                                           .packed_bytes = packed_bytes_with<make_turned_packer>,
                                           .packer = make_turned_packer,
                                           .work = work_of_direct}};
  return kVariants;
}

}  // namespace hetnn::kernels
