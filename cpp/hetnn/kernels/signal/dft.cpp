// dft: lines of a tensor gathered side by side, transformed, and written back.
#include <algorithm>
#include <array>

#include "hetnn/base/error.h"
#include "hetnn/kernels/move/transpose.h"
#include "hetnn/kernels/row_view.h"
#include "hetnn/kernels/signal/fft.h"
#include "hetnn/kernels/signal/signal.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kAlign = 16;  // floats

/// Lines of a tensor [outer, size, inner, parts].
struct LineShape {
  int64_t size = 1, parts = 1;
};

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
    const int64_t stated = call.params.integer("length", 0);
    length_ = stated > 0 ? stated : onesided_ && inverse_ ? 2 * (from_.size - 1) : from_.size;
    // Reals of an even length are the parts of half as many complex numbers.
    const bool reals = inverse_ ? onesided_ : from_.parts == 1;
    halved_ = reals && length_ % 2 == 0 && length_ > 0;
    plan_ = halved_ ? plan_fft(length_ / 2, inverse_, 2) : plan_fft(std::max<int64_t>(length_, 1), inverse_);
    const int64_t most = plan_.radices.empty() ? 1 : *std::ranges::max_element(plan_.radices);
    lines_floats_ = 2 * (plan_.length + 1) * kMostFftLanes;
    part_floats_ = 4 * std::max<int64_t>(most, 1) * kMostFftLanes + kAlign;
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
      Block at{.ops = &ops, .count = std::min(ops.lanes, rows - block * ops.lanes), .from = {}, .to = {}};
      for (int64_t lane = 0; lane < ops.lanes; ++lane) {
        const int64_t row = std::min(block * ops.lanes + lane, rows - 1), o = row / inner_, i = row % inner_;
        at.from[static_cast<size_t>(lane)] = (o * from_.size * inner_ + i) * from_.parts;
        at.to[static_cast<size_t>(lane)] = (o * to_.size * inner_ + i) * to_.parts;
      }
      halved_&& inverse_ ? read_half(at, x, spare, lines) : halved_ ? read_reals(at, x, lines) : read(at, x, lines);
      float* turned = ops.transform(plan_, lines, spare, spare + lines_floats_);
      float* free = turned == lines ? spare : lines;
      halved_&& inverse_ ? write_reals(at, turned, y)
      : halved_          ? write_half(at, turned, free, y)
                         : write(at, turned, y);
    }
  }

 private:
  /// Lines side by side: where each begins in x and in y.
  struct Block {
    const FftOps* ops;
    int64_t count;
    std::array<int64_t, kMostFftLanes> from, to;
  };

  // f(lane, real part, imaginary part) of element k of all lanes.
  template <typename Lines, typename F>
  static void each_lane(const Block& block, Lines* lines, int64_t k, F f) {
    auto* re = lines + 2 * k * block.ops->lanes;
    auto* im = re + block.ops->lanes;
    for (int64_t lane = 0; lane < block.ops->lanes; ++lane) f(static_cast<size_t>(lane), re[lane], im[lane]);
  }

  // Whether lines of that size lie one behind another, as the rows of a matrix.
  bool lies_in_rows(int64_t size, int64_t all) const { return inner_ == 1 && size == all; }

  // Rows of that many floats to lines side by side, and back.
  static void gather_rows(const Block& block, const float* x, int64_t floats, float* lines) {
    const int64_t lanes = block.ops->lanes;
    if (block.count < lanes) std::fill_n(lines, floats * lanes, 0.0f);
    transpose(x + block.from[0], floats, lines, lanes, block.count, floats);
  }
  static void scatter_rows(const Block& block, const float* lines, int64_t floats, float* y) {
    transpose(lines, block.ops->lanes, y + block.to[0], floats, floats, block.count);
  }

  void read(const Block& block, const float* x, float* lines) const {
    if (!onesided_ && from_.parts == 2 && lies_in_rows(from_.size, length_))
      return gather_rows(block, x, 2 * length_, lines);
    const int64_t step = inner_ * from_.parts, given = std::min(from_.size, length_);
    const int64_t needed = onesided_ && inverse_ ? std::min(given, length_ / 2 + 1) : given;
    for (int64_t k = 0; k < length_; ++k) {
      each_lane(block, lines, k, [&](size_t lane, float& re, float& im) {
        const float* at = x + block.from[lane] + k * step;
        re = k < needed ? at[0] : 0.0f;
        im = k < needed && from_.parts == 2 ? at[1] : 0.0f;
      });
    }
    if (!onesided_ || !inverse_) return;
    // The other half are conjugates of this one; its first has no phase.
    each_lane(block, lines, 0, [](size_t, float&, float& im) { im = 0; });
    for (int64_t k = length_ / 2 + 1; k < length_; ++k) {
      const float* mirror = lines + 2 * (length_ - k) * block.ops->lanes;
      each_lane(block, lines, k, [&](size_t lane, float& re, float& im) {
        re = mirror[lane];
        im = -mirror[lane + static_cast<size_t>(block.ops->lanes)];
      });
    }
  }

  void write(const Block& block, float* turned, float* y) const {
    const float scale = inverse_ ? 1.0f / static_cast<float>(length_) : 1.0f;
    if (from_.parts == 2 && to_.parts == 2 && lies_in_rows(to_.size, length_)) {
      for (int64_t k = 0; inverse_ && k < 2 * length_ * block.ops->lanes; ++k) turned[k] *= scale;
      return scatter_rows(block, turned, 2 * length_, y);
    }
    for (int64_t k = 0; k < to_.size; ++k) {
      // Reals have these two frequencies without a phase.
      const bool real = from_.parts == 1 && (k == 0 || 2 * k == length_);
      each_lane(block, turned, k, [&](size_t lane, float re, float im) {
        if (static_cast<int64_t>(lane) < block.count) put(block, lane, k, re * scale, real ? 0.0f : im * scale, y);
      });
    }
  }

  void put(const Block& block, size_t lane, int64_t k, float re, float im, float* y) const {
    float* at = y + block.to[lane] + k * inner_ * to_.parts;
    at[0] = re;
    if (to_.parts == 2) at[1] = im;
  }

  // Even elements as real, odd ones as imaginary parts.
  void read_reals(const Block& block, const float* x, float* lines) const {
    if (lies_in_rows(from_.size, length_)) return gather_rows(block, x, length_, lines);
    const int64_t given = std::min(from_.size, length_), step = inner_;
    for (int64_t k = 0; k < length_ / 2; ++k) {
      each_lane(block, lines, k, [&](size_t lane, float& re, float& im) {
        const float* at = x + block.from[lane] + 2 * k * step;
        re = 2 * k < given ? at[0] : 0.0f;
        im = 2 * k + 1 < given ? at[step] : 0.0f;
      });
    }
  }

  void write_reals(const Block& block, float* turned, float* y) const {
    const float scale = 1.0f / static_cast<float>(length_);
    if (lies_in_rows(to_.size, length_)) {
      for (int64_t k = 0; k < length_ * block.ops->lanes; ++k) turned[k] *= scale;
      return scatter_rows(block, turned, length_, y);
    }
    for (int64_t k = 0; k < length_ / 2; ++k) {
      each_lane(block, turned, k, [&](size_t lane, float re, float im) {
        if (static_cast<int64_t>(lane) >= block.count) return;
        float* at = y + block.to[lane] + 2 * k * inner_;
        at[0] = re * scale;
        at[inner_] = im * scale;
      });
    }
  }

  // Of the transform Z of the halves, E = (Z[k] + conj Z[M-k]) / 2 and O = (Z[k] - conj Z[M-k]) / 2i are those of the
  // even and of the odd elements; x's is E + w^k O.
  void write_half(const Block& block, const float* turned, float* joined, float* y) const {
    const int64_t half = length_ / 2, lanes = block.ops->lanes;
    for (int64_t k = 0; k <= half; ++k) {
      const float re_root = plan_.roots[static_cast<size_t>(2 * (k % length_))];
      const float im_root = plan_.roots[static_cast<size_t>(2 * (k % length_) + 1)];
      const float* low = turned + 2 * (k % half) * lanes;
      const float* high = turned + 2 * ((half - k) % half) * lanes;
      float* to = joined + 2 * k * lanes;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const float a = low[lane], b = low[lane + lanes], c = high[lane], d = -high[lane + lanes];
        const float odd_re = b - d, odd_im = c - a;
        to[lane] = 0.5f * (a + c + (odd_re * re_root - odd_im * im_root));
        to[lane + lanes] = 0.5f * (b + d + (odd_re * im_root + odd_im * re_root));
      }
      if (k == 0 || k == half) std::fill_n(to + lanes, lanes, 0.0f);
    }
    if (onesided_ && lies_in_rows(to_.size, half + 1)) return scatter_rows(block, joined, 2 * (half + 1), y);
    for (int64_t k = 0; k < to_.size; ++k) {
      each_lane(block, joined, k <= half ? k : length_ - k, [&](size_t lane, float re, float im) {
        if (static_cast<int64_t>(lane) < block.count) put(block, lane, k, re, k <= half ? im : -im, y);
      });
    }
  }

  // The way back, twice as large.
  void read_half(const Block& block, const float* x, float* joined, float* lines) const {
    const int64_t half = length_ / 2, lanes = block.ops->lanes, step = inner_ * from_.parts;
    if (from_.parts == 2 && lies_in_rows(from_.size, half + 1)) {
      gather_rows(block, x, 2 * (half + 1), joined);
    } else {
      for (int64_t k = 0; k <= half; ++k) {
        each_lane(block, joined, k, [&](size_t lane, float& re, float& im) {
          const float* at = x + block.from[lane] + k * step;
          re = k < from_.size ? at[0] : 0.0f;
          im = k < from_.size && from_.parts == 2 ? at[1] : 0.0f;
        });
      }
    }
    for (const int64_t k : {int64_t{0}, half}) std::fill_n(joined + (2 * k + 1) * lanes, lanes, 0.0f);
    for (int64_t k = 0; k < half; ++k) {
      const float re_root = plan_.roots[static_cast<size_t>(2 * k)];
      const float im_root = plan_.roots[static_cast<size_t>(2 * k + 1)];
      const float* low = joined + 2 * k * lanes;
      const float* high = joined + 2 * (half - k) * lanes;
      float* to = lines + 2 * k * lanes;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const float a = low[lane], b = low[lane + lanes], c = high[lane], d = -high[lane + lanes];
        const float odd_re = a - c, odd_im = b - d;
        to[lane] = a + c - (odd_re * im_root + odd_im * re_root);
        to[lane + lanes] = b + d + (odd_re * re_root - odd_im * im_root);
      }
    }
  }

  bool inverse_, onesided_, halved_ = false;
  int64_t outer_ = 1, inner_ = 1, length_ = 1;
  LineShape from_, to_;
  FftPlan plan_;
  int64_t lines_floats_ = 0, part_floats_ = 0;
  const FftOps* ops_ = &fft_ops();
};

}  // namespace

std::unique_ptr<Kernel> make_dft(const KernelCall& call) {
  if (call.inputs.size() != 1 || call.outputs.size() != 1)
    throw InvalidModel(text("dft takes one input and gives one output; got ", call.inputs.size(), " and ",
                            call.outputs.size(), ". Check the call."));
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  require_f32(x, "dft: x");
  require_f32(y, "dft: the output");
  if (x.layout != Layout::plain || y.layout != Layout::plain)
    throw Unsupported(text("dft reads and writes plain tensors; got ", view_text(x), ". Insert a copy."));
  const int64_t given = call.params.integer("axis", -2), axis = given < 0 ? given + x.rank : given;
  if (axis < 0 || axis >= x.rank - 1 || y.rank != x.rank)
    throw InvalidModel(text("dft: axis must be one of x but the last; got ", given, " of ", view_text(x), " and ",
                            view_text(y), ". Check the call."));
  return std::make_unique<Dft>(call, static_cast<size_t>(axis));
}

std::span<const Variant> signal_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "dft", .op = "dft", .speed = "product", .create = make_dft, .layout = LayoutWish::plain},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
