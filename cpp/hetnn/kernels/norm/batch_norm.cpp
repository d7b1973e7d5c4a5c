// batch_norm_training and batch_norm_gradient: sums of every channel over the batch, then one affine map.
//
// The batch is cut into a few chunks, alike whatever the threads are: first their sums, then of each channel what it is
// mapped by, then the map, with the threads waiting for one another in between.
#include <algorithm>
#include <cmath>

#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/norm/batch_ops.h"
#include "hetnn/kernels/norm/norm.h"
#include "hetnn/kernels/norm/row_ops.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kSerialBelow = 8192;  // elements
constexpr int64_t kMostChunks = 32;     // of rows; of planes an image is one
constexpr int64_t kRows = 64;           // at once, by which they stay in the first-level cache
constexpr int64_t kColumns = 64;        // of a block of channels

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }
int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// [N,C,...] as rows of channels, or as planes of pixels; all large operands lie alike.
class Batch {
 public:
  explicit Batch(const TensorView& x)
      : channels_(x.dims[1]), pixels_(1), images_(x.dims[0]), by_rows_(x.rank == 2 || x.layout == Layout::nhwc) {
    for (int axis = 2; axis < x.rank; ++axis) pixels_ *= x.dims[static_cast<size_t>(axis)];
    const int64_t units = by_rows_ ? images_ * pixels_ : images_;
    each_ = by_rows_ ? std::max<int64_t>(1, (units + kMostChunks * kRows - 1) / (kMostChunks * kRows)) * kRows : 1;
    chunks_ = units == 0 || pixels_ == 0 ? 0 : (units + each_ - 1) / each_;
  }

  bool by_rows() const { return by_rows_; }
  int64_t channels() const { return channels_; }
  int64_t pixels() const { return pixels_; }
  int64_t chunks() const { return chunks_; }
  int64_t elems() const { return images_ * channels_ * pixels_; }
  /// Elements of a channel in a chunk, and in all.
  int64_t count(int64_t chunk) const { return (end(chunk) - begin(chunk)) * (by_rows_ ? 1 : pixels_); }
  int64_t count() const { return images_ * pixels_; }
  /// Rows, or images, of a chunk.
  int64_t begin(int64_t chunk) const { return chunk * each_; }
  int64_t end(int64_t chunk) const { return std::min((chunk + 1) * each_, by_rows_ ? images_ * pixels_ : images_); }

  /// f(chunk, first channel, channels) for this thread's blocks; of planes one channel each.
  template <typename F>
  void for_blocks(const RunContext& context, const F& f) const {
    const int64_t width = by_rows_ ? kColumns : 1, blocks = (channels_ + width - 1) / width;
    const Share share = share_of(chunks_ * blocks, context.thread, context.threads);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t first = item % blocks * width;
      f(item / blocks, first, std::min(width, channels_ - first));
    }
  }

 private:
  int64_t channels_, pixels_, images_;
  bool by_rows_;
  int64_t each_, chunks_;  // rows or images of a chunk
};

/// Two sums a channel and chunk, and factors a channel, in scratch.
class OverBatch : public Kernel {
 public:
  OverBatch(const TensorView& x, int64_t factors) : batch_(x), factors_(factors) {}

  bool serial() const override { return batch_.elems() < kSerialBelow; }
  int64_t scratch_bytes(int /*threads*/) const override {
    return sums_bytes() + factors_ * aligned(batch_.channels() * 4);
  }

 protected:
  struct Sums {
    double first, second;
  };

  Sums* sums(const RunContext& context, int64_t chunk) const {
    return reinterpret_cast<Sums*>(context.scratch) + chunk * batch_.channels();
  }
  float* factor(const RunContext& context, int64_t index) const {
    return reinterpret_cast<float*>(context.scratch + sums_bytes() + index * aligned(batch_.channels() * 4));
  }
  static void wait(const RunContext& context) {
    if (context.threads > 1) context.barrier.arrive_and_wait();
  }

  Batch batch_;

 private:
  int64_t sums_bytes() const {
    return aligned(batch_.chunks() * batch_.channels() * static_cast<int64_t>(sizeof(Sums)));
  }

  int64_t factors_;
};

class BatchNormTraining final : public OverBatch {
 public:
  explicit BatchNormTraining(const KernelCall& call)
      : OverBatch(call.inputs[0], 2),
        weight_(call.params.integer("weight", 0) != 0 ? 1 : -1),
        bias_(call.params.integer("bias", 0) != 0 ? (weight_ < 0 ? 1 : 2) : -1),
        eps_(call.params.real("eps", 1e-5)),
        epilogue_(call, call.outputs[0]),
        rows_(row_view(call.outputs[0])),
        in_pitch_(row_view(call.inputs[0]).pitch) {}

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const float* x = floats(inputs[0]);
    batch_.for_blocks(context, [&](int64_t chunk, int64_t first, int64_t width) {
      batch_.by_rows() ? measure_rows(x, chunk, first, width, sums(context, chunk) + first)
                       : measure_plane(x, chunk, first, sums(context, chunk)[first]);
    });
    wait(context);
    const Share share = share_of(batch_.channels(), context.thread, context.threads);
    for (int64_t c = share.begin; c < share.end; ++c) settle(context, c, inputs, outputs);
    wait(context);
    batch_.for_blocks(context, [&](int64_t chunk, int64_t first, int64_t width) {
      const float *scale = factor(context, 0) + first, *shift = factor(context, 1) + first;
      batch_.by_rows() ? map_rows(x, floats(outputs[0]), chunk, first, width, scale, shift, inputs)
                       : map_planes(x, floats(outputs[0]), chunk, first, *scale, *shift, inputs);
    });
  }

 private:
  // The mean of a chunk and the sum of squares about it: by distances from the mean of the first rows, so that little
  // is lost where values are far from 0.
  void measure_rows(const float* x, int64_t chunk, int64_t first, int64_t width, Sums* to) const {
    const int64_t begin = batch_.begin(chunk), rows = batch_.end(chunk) - begin;
    const float* at = x + begin * in_pitch_ + first;
    double few[kColumns] = {}, distances[kColumns] = {}, squares[kColumns] = {};
    const int64_t some = std::min(rows, kRows);
    row_ops().column_sums(at, in_pitch_, some, width, nullptr, false, few);
    float near[kColumns];
    for (int64_t c = 0; c < width; ++c) {
      near[c] = static_cast<float>(few[c] / static_cast<double>(some));
      if (!std::isfinite(near[c])) near[c] = 0;
    }
    batch_ops().moments(at, in_pitch_, rows, width, near, distances, squares);
    for (int64_t c = 0; c < width; ++c) {
      const double away = distances[c] / static_cast<double>(rows), about = squares[c] - distances[c] * away;
      to[c] = {near[c] + away, about < 0 ? 0 : about};
    }
  }

  void measure_plane(const float* x, int64_t image, int64_t channel, Sums& to) const {
    const float* plane = x + (image * batch_.channels() + channel) * batch_.pixels();
    const double mean = row_ops().sum(plane, batch_.pixels()) / static_cast<double>(batch_.pixels());
    const auto near = static_cast<float>(mean);
    to = {near, row_ops().squares(plane, batch_.pixels(), near)};
  }

  // Statistics of a channel, and what it is mapped by.
  void settle(const RunContext& context, int64_t c, const std::byte* const* inputs, std::byte* const* outputs) const {
    const auto count = static_cast<double>(batch_.count());
    double mean = 0, variance = 0;
    for (int64_t chunk = 0; chunk < batch_.chunks(); ++chunk)
      mean += sums(context, chunk)[c].first * static_cast<double>(batch_.count(chunk));
    mean /= count;
    for (int64_t chunk = 0; chunk < batch_.chunks(); ++chunk) {
      const Sums& its = sums(context, chunk)[c];
      const double away = its.first - mean;
      variance += its.second + away * away * static_cast<double>(batch_.count(chunk));
    }
    variance /= count;
    const double weight = weight_ < 0 ? 1.0 : static_cast<double>(floats(inputs[weight_])[c]);
    const double bias = bias_ < 0 ? 0.0 : static_cast<double>(floats(inputs[bias_])[c]);
    const double scale = weight / std::sqrt(variance + eps_);
    floats(outputs[1])[c] = static_cast<float>(mean);
    floats(outputs[2])[c] = static_cast<float>(variance);
    factor(context, 0)[c] = static_cast<float>(scale);
    factor(context, 1)[c] = static_cast<float>(bias - mean * scale);
  }

  void map_rows(const float* x, float* y, int64_t chunk, int64_t first, int64_t width, const float* scale,
                const float* shift, const std::byte* const* inputs) const {
    for (int64_t row = batch_.begin(chunk), end = batch_.end(chunk); row < end; row += kRows) {
      const int64_t rows = std::min(kRows, end - row);
      float* to = y + row * rows_.pitch + first;
      row_ops().affine(x + row * in_pitch_ + first, in_pitch_, to, rows_.pitch, rows, width, scale, shift);
      if (!epilogue_.empty()) epilogue_.apply(to, rows_.pitch, rows, width, row, first, inputs);
    }
  }

  void map_planes(const float* x, float* y, int64_t chunk, int64_t channel, float scale, float shift,
                  const std::byte* const* inputs) const {
    for (int64_t n = batch_.begin(chunk); n < batch_.end(chunk); ++n) {
      const int64_t at = (n * batch_.channels() + channel) * batch_.pixels();
      row_ops().scaled(x + at, y + at, batch_.pixels(), scale, shift);
      if (!epilogue_.empty())
        epilogue_.apply(y + at, rows_.cols, batch_.pixels() / rows_.cols, rows_.cols, at / rows_.cols, 0, inputs);
    }
  }

  int weight_, bias_;  // positions; -1 where absent
  double eps_;
  EpiloguePlan epilogue_;
  RowView rows_;
  int64_t in_pitch_;
};

class BatchNormGradient final : public OverBatch {
 public:
  explicit BatchNormGradient(const KernelCall& call)
      : OverBatch(call.inputs[0], 3),
        weight_(call.params.integer("weight", 0) != 0 ? 2 : -1),
        mean_(weight_ < 0 ? 2 : 3),
        pitches_{row_view(call.inputs[0]).pitch, row_view(call.inputs[1]).pitch, row_view(call.outputs[0]).pitch} {}

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const float *g = floats(inputs[0]), *x = floats(inputs[1]), *mean = floats(inputs[mean_]);
    batch_.for_blocks(context, [&](int64_t chunk, int64_t first, int64_t width) {
      double sum[kColumns] = {}, product[kColumns] = {};
      for_parts(chunk, first, [&](const Part& part) {
        if (batch_.by_rows()) {
          batch_ops().products(g + part.gradient, pitches_[0], x + part.x, pitches_[1], part.rows, width, mean + first,
                               sum, product);
        } else {
          batch_ops().line_products(g + part.gradient, x + part.x, part.rows, mean[first], sum, product);
        }
      });
      for (int64_t c = 0; c < width; ++c) sums(context, chunk)[first + c] = {sum[c], product[c]};
    });
    wait(context);
    const Share share = share_of(batch_.channels(), context.thread, context.threads);
    for (int64_t c = share.begin; c < share.end; ++c) settle(context, c, inputs, outputs);
    wait(context);
    batch_.for_blocks(context, [&](int64_t chunk, int64_t first, int64_t width) {
      const float *a = factor(context, 0) + first, *b = factor(context, 1) + first, *d = factor(context, 2) + first;
      for_parts(chunk, first, [&](const Part& part) {
        float* y = floats(outputs[0]) + part.y;
        if (batch_.by_rows()) {
          batch_ops().combine(g + part.gradient, pitches_[0], x + part.x, pitches_[1], y, pitches_[2], part.rows, width,
                              mean + first, a, b, d);
        } else {
          batch_ops().line_combine(g + part.gradient, x + part.x, y, part.rows, mean[first], *a, *b, *d);
        }
      });
    });
  }

 private:
  /// Rows of a block, or the pixels of one plane: where they stand, and how many there are.
  struct Part {
    int64_t gradient, x, y, rows;
  };

  template <typename F>
  void for_parts(int64_t chunk, int64_t first, const F& f) const {
    for (int64_t at = batch_.begin(chunk), end = batch_.end(chunk); at < end; at += batch_.by_rows() ? kRows : 1) {
      if (batch_.by_rows()) {
        f(Part{at * pitches_[0] + first, at * pitches_[1] + first, at * pitches_[2] + first,
               std::min(kRows, end - at)});
      } else {
        const int64_t plane = (at * batch_.channels() + first) * batch_.pixels();
        f(Part{plane, plane, plane, batch_.pixels()});
      }
    }
  }

  // of_x = weight scale (g - mean(g) - (x - mean) scale² mean(g (x - mean)))
  void settle(const RunContext& context, int64_t c, const std::byte* const* inputs, std::byte* const* outputs) const {
    double sum = 0, product = 0;
    for (int64_t chunk = 0; chunk < batch_.chunks(); ++chunk) {
      sum += sums(context, chunk)[c].first;
      product += sums(context, chunk)[c].second;
    }
    const auto count = static_cast<double>(batch_.count());
    const auto scale = static_cast<double>(floats(inputs[mean_ + 1])[c]);
    const double by = (weight_ < 0 ? 1.0 : static_cast<double>(floats(inputs[weight_])[c])) * scale;
    floats(outputs[1])[c] = static_cast<float>(product * scale);
    floats(outputs[2])[c] = static_cast<float>(sum);
    factor(context, 0)[c] = static_cast<float>(by);
    factor(context, 1)[c] = static_cast<float>(-by * scale * scale * product / count);
    factor(context, 2)[c] = static_cast<float>(-by * sum / count);
  }

  int weight_, mean_;  // positions; -1 where absent
  int64_t pitches_[3];
};

// Whether all is turned to rows of channels: where some operand lies so, or has a number for each of them, and where
// one pixel is as good.
bool turns(const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  if (y.rank < 3 || y.rank > 5) return false;
  const auto lies_so = [](const TensorView& view) { return view.layout == Layout::nhwc; };
  const auto is_of_channels = [&](const Step& step) {
    if (step.input < 0 || is_sum(step)) return false;
    const TensorView& view = call.inputs[static_cast<size_t>(step.input)];
    return view.elems() > 1 && !std::ranges::equal(view.shape(), y.shape());
  };
  if (std::ranges::any_of(call.steps, is_of_channels)) return true;
  return as_nhwc(y) || std::ranges::any_of(call.inputs, lies_so);
}

Refusal serves_rows(const KernelCall& call) { return Terms("batch_norm_training", call).steps_on_rows(); }

}  // namespace

Refusal serves_batch_norm_training(const KernelCall& call) {
  const size_t own = 1 + static_cast<size_t>(call.params.integer("weight", 0) + call.params.integer("bias", 0));
  Terms terms("batch_norm_training", call);
  terms.of(DType::f32, own)
      .hold(call.inputs[0].rank >= 2, "takes a batch and channels; got ", view_text(call.inputs[0]));
  if (!terms.met()) return terms;
  return terms.hold(turns(call) ? serves_with_nhwc(call, serves_rows) : serves_rows(call));
}

Refusal serves_batch_norm_gradient(const KernelCall& call) {
  return Terms("batch_norm_gradient", call)
      .of(DType::f32, call.inputs.size())
      .hold(call.inputs[0].rank >= 2, "takes a batch and channels; got ", view_text(call.inputs[0]));
}

std::unique_ptr<Kernel> make_batch_norm_training(const KernelCall& call) {
  const auto make = [](const KernelCall& alike) -> std::unique_ptr<Kernel> {
    return std::make_unique<BatchNormTraining>(alike);
  };
  return turns(call) ? make_with_nhwc(call, make) : make(call);
}

std::unique_ptr<Kernel> make_batch_norm_gradient(const KernelCall& call) {
  const auto make = [](const KernelCall& alike) -> std::unique_ptr<Kernel> {
    return std::make_unique<BatchNormGradient>(alike);
  };
  return turns(call) ? make_with_nhwc(call, make) : make(call);
}

}  // namespace hetnn::kernels
