// dft: lines of a tensor gathered side by side, transformed, and written back.
#include <algorithm>
#include <array>

#include "hetnn/base/error.h"
#include "hetnn/kernels/move/transpose.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/signal/fft.h"
#include "hetnn/kernels/signal/signal.h"
#include "hetnn/ops/signal/fourier.h"

namespace hetnn::kernels {
namespace {

/// Of lines of a tensor [outer, size, inner, parts].
struct LineShape {
  int64_t size = 1, parts = 1;
};

// Elements of a line of the transform.
int64_t length_of(const KernelCall& call, size_t axis) {
  const int64_t stated = call.params.integer("length", 0), size = call.inputs[0].dims[axis];
  const bool halved = call.params.integer("onesided", 0) != 0 && call.params.integer("inverse", 0) != 0;
  return stated > 0 ? stated : halved ? 2 * (size - 1) : size;
}

size_t axis_of(const KernelCall& call) {
  return checked_axis("dft", call.params.integer("axis", -2), call.inputs[0].rank);
}

class Dft final : public Kernel {
 public:
  Dft(const KernelCall& call, size_t axis)
      : inverse_(call.params.integer("inverse", 0) != 0), onesided_(call.params.integer("onesided", 0) != 0) {
    const TensorView &x = call.inputs[0], &y = call.outputs[0];
    for (size_t k = 0; k < axis; ++k) outer_ *= x.dims[k];
    for (size_t k = axis + 1; k + 1 < static_cast<size_t>(x.rank); ++k) inner_ *= x.dims[k];
    const auto last = static_cast<size_t>(x.rank - 1);
    from_ = {x.dims[axis], x.dims[last]};
    to_ = {y.dims[axis], y.dims[last]};
    length_ = length_of(call, axis);
    const std::string norm = call.params.text("norm", "backward");
    const std::optional<double> scale = ops::fourier_scale(norm, inverse_, length_);
    HETNN_ASSERT(scale, norm);
    scale_ = static_cast<float>(*scale);
    // Reals of an even length are the parts of half as many complex numbers.
    const bool even = length_ % 2 == 0;
    from_halves_ = even && !inverse_ && from_.parts == 1;
    to_halves_ = even && inverse_ && onesided_;
    const bool halved = from_halves_ || to_halves_;
    plan_ = plan_fft(halved ? length_ / 2 : length_, inverse_, halved ? 2 : 1);
    lines_floats_ = 2 * (plan_.length + 1) * kMostFftLanes;
    part_floats_ = part_floats(plan_);
    // Where the transform's pairs are those of x or y, one after another.
    const bool rows = inner_ == 1 && takes_rows(plan_);
    const int64_t floats = 2 * plan_.length;
    from_rows_ =
        rows && from_.size * from_.parts == floats && (from_halves_ || (from_.parts == 2 && !(inverse_ && onesided_)));
    to_rows_ =
        rows && to_.size * to_.parts == floats && (to_halves_ || (to_.parts == 2 && from_.parts == 2 && scale_ == 1));
  }

  int64_t scratch_bytes(int threads) const override {
    return threads * (2 * lines_floats_ + part_floats_) * static_cast<int64_t>(sizeof(float));
  }
  bool serial() const override { return outer_ * inner_ * length_ < 4096; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const FftOps& ops = *ops_;
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    auto* y = reinterpret_cast<float*>(outputs[0]);
    float* lines = reinterpret_cast<float*>(context.scratch) + context.thread * (2 * lines_floats_ + part_floats_);
    float* spare = lines + lines_floats_;
    const int64_t rows = outer_ * inner_, blocks = (rows + ops.lanes - 1) / ops.lanes;
    const Share share = share_of(blocks, context.thread, context.threads);
    for (int64_t block = share.begin; block < share.end; ++block) {
      const Block at = block_of(block * ops.lanes, rows);
      FftRows direct;
      if (from_rows_ && at.count == ops.lanes) {
        direct.from = x + at.from[0];
        direct.from_ld = 2 * plan_.length;
      } else {
        read(at, x, lines, spare);
      }
      if (to_rows_ && at.count == ops.lanes) {
        direct.to = y + at.to[0];
        direct.to_ld = 2 * plan_.length;
      }
      float* turned = ops.transform(plan_, direct, lines, spare, spare + lines_floats_);
      if (!direct.to) write(at, turned, turned == lines ? spare : lines, y);
    }
  }

 private:
  /// Lines side by side: where each begins in x and in y, and whether they lie side by side there as well.
  struct Block {
    int64_t count;
    bool adjacent;
    std::array<int64_t, kMostFftLanes> from, to;
  };

  Block block_of(int64_t first, int64_t rows) const {
    const int64_t lanes = ops_->lanes;
    Block out{
        .count = std::min(lanes, rows - first), .adjacent = first % inner_ + lanes <= inner_, .from = {}, .to = {}};
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t row = std::min(first + lane, rows - 1), o = row / inner_, i = row % inner_;
      out.from[static_cast<size_t>(lane)] = (o * from_.size * inner_ + i) * from_.parts;
      out.to[static_cast<size_t>(lane)] = (o * to_.size * inner_ + i) * to_.parts;
    }
    return out;
  }

  // f(lane, real part, imaginary part) of element k of all lanes.
  template <typename Lines, typename F>
  void each_lane(Lines* lines, int64_t k, F f) const {
    auto* re = lines + 2 * k * ops_->lanes;
    auto* im = re + ops_->lanes;
    for (int64_t lane = 0; lane < ops_->lanes; ++lane) f(static_cast<size_t>(lane), re[lane], im[lane]);
  }

  // Rows of that many floats to lines side by side, and back.
  void gather_rows(const Block& block, const float* x, int64_t floats, float* lines) const {
    if (block.count < ops_->lanes) std::fill_n(lines, floats * ops_->lanes, 0.0f);
    transpose(x + block.from[0], floats, lines, ops_->lanes, block.count, floats);
  }
  void scatter_rows(const Block& block, const float* lines, int64_t floats, float* y) const {
    transpose(lines, ops_->lanes, y + block.to[0], floats, floats, block.count);
  }

  void read(const Block& block, const float* x, float* lines, float* spare) const {
    if (from_halves_) return read_reals(block, x, lines);
    if (to_halves_) {
      read_elements(block, x, length_ / 2 + 1, spare);
      return ops_->split_halves(plan_, spare, scale_, lines);
    }
    if (!onesided_ || !inverse_) return read_elements(block, x, length_, lines);
    read_elements(block, x, length_ / 2 + 1, lines);
    // The other half are conjugates of this one; its first has no phase.
    each_lane(lines, 0, [](size_t, float&, float& im) { im = 0; });
    for (int64_t k = length_ / 2 + 1; k < length_; ++k) {
      const float* mirror = lines + 2 * (length_ - k) * ops_->lanes;
      each_lane(lines, k, [&](size_t lane, float& re, float& im) {
        re = mirror[lane];
        im = -mirror[lane + static_cast<size_t>(ops_->lanes)];
      });
    }
  }

  // The first `count` elements of x, 0 behind its end.
  void read_elements(const Block& block, const float* x, int64_t count, float* lines) const {
    const int64_t step = inner_ * from_.parts, given = std::min(from_.size, count);
    if (from_.parts == 2 && inner_ == 1 && from_.size == count) return gather_rows(block, x, 2 * count, lines);
    int64_t k = 0;
    if (from_.parts == 2 && block.adjacent) {
      ops_->read_pairs(x + block.from[0], step, given, lines);
      k = given;
    }
    for (; k < count; ++k) {
      each_lane(lines, k, [&](size_t lane, float& re, float& im) {
        const float* at = x + block.from[lane] + k * step;
        re = k < given ? at[0] : 0.0f;
        im = k < given && from_.parts == 2 ? at[1] : 0.0f;
      });
    }
  }

  // Even elements as real, odd ones as imaginary parts.
  void read_reals(const Block& block, const float* x, float* lines) const {
    if (inner_ == 1 && from_.size == length_) return gather_rows(block, x, length_, lines);
    const int64_t given = std::min(from_.size, length_), step = inner_;
    for (int64_t k = 0; k < length_ / 2; ++k) {
      each_lane(lines, k, [&](size_t lane, float& re, float& im) {
        const float* at = x + block.from[lane] + 2 * k * step;
        re = 2 * k < given ? at[0] : 0.0f;
        im = 2 * k + 1 < given ? at[step] : 0.0f;
      });
    }
  }

  void write(const Block& block, float* turned, float* free, float* y) const {
    if (to_halves_) return write_reals(block, turned, y);
    if (from_halves_) {
      ops_->join_halves(plan_, turned, free);
      scale(length_ / 2 + 1, free);
      return write_elements(block, free, length_ / 2 + 1, y);
    }
    scale(length_, turned);
    // Of reals these frequencies have no phase.
    for (const int64_t k : {int64_t{0}, length_ / 2}) {
      if (from_.parts == 1 && 2 * k % length_ == 0) std::fill_n(turned + (2 * k + 1) * ops_->lanes, ops_->lanes, 0.0f);
    }
    write_elements(block, turned, length_, y);
  }

  void scale(int64_t elements, float* lines) const {
    if (scale_ != 1) ops_->scale(lines, 2 * elements * ops_->lanes, scale_);
  }

  // The elements that there are, and behind them the conjugates of those before the middle.
  void write_elements(const Block& block, const float* lines, int64_t count, float* y) const {
    const int64_t step = inner_ * to_.parts, there = std::min(to_.size, count);
    if (to_.parts == 2 && inner_ == 1 && to_.size == count) return scatter_rows(block, lines, 2 * count, y);
    int64_t k = 0;
    if (to_.parts == 2 && block.adjacent) {
      ops_->write_pairs(lines, there, y + block.to[0], step);
      k = there;
    }
    for (; k < to_.size; ++k) {
      each_lane(lines, k < count ? k : length_ - k, [&](size_t lane, float re, float im) {
        if (static_cast<int64_t>(lane) >= block.count) return;
        float* at = y + block.to[lane] + k * step;
        at[0] = re;
        if (to_.parts == 2) at[1] = k < count ? im : -im;
      });
    }
  }

  void write_reals(const Block& block, const float* turned, float* y) const {
    if (inner_ == 1 && to_.size == length_) return scatter_rows(block, turned, length_, y);
    for (int64_t k = 0; k < length_ / 2; ++k) {
      each_lane(turned, k, [&](size_t lane, float re, float im) {
        if (static_cast<int64_t>(lane) >= block.count) return;
        float* at = y + block.to[lane] + 2 * k * inner_;
        at[0] = re;
        at[inner_] = im;
      });
    }
  }

  bool inverse_, onesided_, from_halves_ = false, to_halves_ = false, from_rows_ = false, to_rows_ = false;
  int64_t outer_ = 1, inner_ = 1, length_ = 1;
  float scale_ = 1;
  LineShape from_, to_;
  FftPlan plan_;
  int64_t lines_floats_ = 0, part_floats_ = 0;
  const FftOps* ops_ = &fft_ops();
};

}  // namespace

Refusal serves_dft(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  Terms terms("dft", call);
  terms.of(DType::f32, 1)
      .plain()
      .hold(x.rank > 1 && axis_of(call) + 1 < static_cast<size_t>(x.rank),
            "transforms along an axis before the last; got ", view_text(x));
  if (terms.met()) terms.hold(length_of(call, axis_of(call)) > 0, "takes lines of one element or more");
  return terms;
}

std::unique_ptr<Kernel> make_dft(const KernelCall& call) { return std::make_unique<Dft>(call, axis_of(call)); }

std::span<const Variant> signal_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "dft",
       .op = "dft",
       .speed = "product",
       .serves = serves_dft,
       .create = make_dft,
       .layout = LayoutWish::plain},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
