// layer, rms, group and instance norm, and the channelwise scale and shift.
#include "hetnn/kernels/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/block_ops.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/norm/row_ops.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kSerialBelow = 8192;

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

/// Positions of the optional inputs, in their fixed order; -1 where absent.
struct Operands {
  int residual = -1, weight = -1, bias = -1;
};

Operands read_operands(const KernelCall& call, bool may_have_residual) {
  Operands operands;
  int next = 1;
  if (may_have_residual && call.params.integer("residual", 0) != 0) operands.residual = next++;
  if (call.params.integer("weight", 0) != 0) operands.weight = next++;
  if (call.params.integer("bias", 0) != 0) operands.bias = next++;
  return operands;
}

// What the norms share: f32, and so many elements of a residual, of weights and of biases.
Terms norm_terms(std::string_view name, const KernelCall& call, const Operands& operands, int64_t each) {
  const size_t own = 1 + (operands.residual >= 0) + (operands.weight >= 0) + (operands.bias >= 0);
  Terms terms(name, call);
  terms.of(DType::f32, own);
  for (const int input : {operands.weight, operands.bias}) {
    if (!terms.met() || input < 0) continue;
    const TensorView& view = call.inputs[static_cast<size_t>(input)];
    terms.hold(view.elems() == each, "takes ", each, " weights and biases; got ", view_text(view));
  }
  return terms;
}

// Elements of the last `axes` axes.
int64_t elems_of_last(const TensorView& x, int64_t axes) {
  int64_t out = 1;
  for (const int64_t size : x.shape().last(static_cast<size_t>(axes))) out *= size;
  return out;
}

/// Over the last axes of plain rows, optionally after adding a residual.
class RowNorm final : public Kernel {
 public:
  RowNorm(const KernelCall& call, bool rms)
      : rms_(rms),
        operands_(read_operands(call, true)),
        second_output_(call.outputs.size() > 1),
        eps_(static_cast<float>(call.params.real("eps", 1e-5))),
        epilogue_(call, call.outputs[0]),
        ops_(&row_ops()),
        add_(block_function(ops::Function::add)) {
    const TensorView& x = call.inputs[0];
    n_ = elems_of_last(x, call.params.integer("axes", 1));
    rows_ = n_ == 0 ? 0 : x.elems() / n_;
    cols_ = x.dims[static_cast<size_t>(x.rank - 1)];
  }

  bool serial() const override { return rows_ * n_ < kSerialBelow; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const float* weight = operands_.weight < 0 ? nullptr : floats(inputs[operands_.weight]);
    const float* bias = operands_.bias < 0 ? nullptr : floats(inputs[operands_.bias]);
    const Share share = share_of(rows_, context.thread, context.threads);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const float* x = floats(inputs[0]) + row * n_;
      float* y = floats(outputs[0]) + row * n_;
      if (operands_.residual >= 0) {
        float* sum = second_output_ ? floats(outputs[1]) + row * n_ : y;
        add_({x, n_, sum, n_, 1, n_, floats(inputs[operands_.residual]) + row * n_, n_, 1});
        x = sum;
      }
      const auto count = static_cast<double>(n_);
      const auto mean = rms_ ? 0.0f : static_cast<float>(ops_->sum(x, n_) / count);
      const double variance = ops_->squares(x, n_, mean) / count;
      const auto scale = static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(eps_)));
      ops_->normalize(x, y, n_, mean, scale, weight, bias);
      if (!epilogue_.empty()) epilogue_.apply(y, cols_, n_ / cols_, cols_, row * (n_ / cols_), 0, inputs);
    }
  }

 private:
  bool rms_;
  Operands operands_;
  bool second_output_;
  float eps_;
  EpiloguePlan epilogue_;
  const RowOps* ops_;
  BlockFunction add_;
  int64_t n_ = 1, rows_ = 0, cols_ = 1;
};

/// [N, C, pixels] in either layout.
struct Channels {
  int64_t batch = 1, channels = 1, pixels = 1;
};

Channels channels_of(const TensorView& view) {
  Channels c{view.dims[0], view.dims[1], 1};
  for (int axis = 2; axis < view.rank; ++axis) c.pixels *= view.dims[static_cast<size_t>(axis)];
  return c;
}

/// Each (image, group) becomes y = x * scale[c] + shift[c] once its mean and variance are known.
class GroupNorm final : public Kernel {
 public:
  GroupNorm(const KernelCall& call, int64_t groups)
      : c_(channels_of(call.inputs[0])),
        groups_(groups),
        operands_(read_operands(call, false)),
        eps_(static_cast<float>(call.params.real("eps", 1e-5))),
        epilogue_(call, call.outputs[0]),
        ops_(&row_ops()),
        nhwc_(call.inputs[0].layout == Layout::nhwc),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        rows_(row_view(call.outputs[0])) {
    // Enough whole groups at once to fill a vector of channels.
    const int64_t per_group = c_.channels / groups;
    block_groups_ = nhwc_ ? std::max<int64_t>(1, 16 / per_group) : 1;
  }

  bool serial() const override { return c_.batch * c_.channels * c_.pixels < kSerialBelow; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const int64_t blocks = (groups_ + block_groups_ - 1) / block_groups_;
    const Share share = share_of(c_.batch * blocks, context.thread, context.threads);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t n = item / blocks, first = item % blocks * block_groups_;
      normalize(n, first, std::min(groups_, first + block_groups_), inputs, floats(outputs[0]));
    }
  }

 private:
  static constexpr int64_t kMaxChannels = 64;

  // Channels of groups [first, last) of image n, a few at a time so that the statistics stay on the stack.
  void normalize(int64_t n, int64_t first, int64_t last, const std::byte* const* inputs, float* y) const {
    const float* x = floats(inputs[0]);
    const int64_t per_group = c_.channels / groups_;
    const int64_t begin = first * per_group, end = last * per_group;
    const auto count = static_cast<double>(per_group * c_.pixels);
    const auto for_parts = [&](auto f) {
      for (int64_t c = begin; c < end; c += kMaxChannels) f(c, std::min(end, c + kMaxChannels) - c);
    };
    double group_sums[16] = {}, group_squares[16] = {};
    const auto group_of = [&](int64_t c) { return static_cast<size_t>(c / per_group - first); };
    const auto mean_of = [&](int64_t c) { return static_cast<float>(group_sums[group_of(c)] / count); };
    for_parts([&](int64_t c0, int64_t width) {
      double sums[kMaxChannels] = {};
      add_channel_sums(x, n, c0, width, nullptr, sums);
      for (int64_t c = 0; c < width; ++c) group_sums[group_of(c0 + c)] += sums[c];
    });
    for_parts([&](int64_t c0, int64_t width) {
      double sums[kMaxChannels] = {};
      float means[kMaxChannels];
      for (int64_t c = 0; c < width; ++c) means[c] = mean_of(c0 + c);
      add_channel_sums(x, n, c0, width, means, sums);
      for (int64_t c = 0; c < width; ++c) group_squares[group_of(c0 + c)] += sums[c];
    });
    for_parts([&](int64_t c0, int64_t width) {
      float scale[kMaxChannels], shift[kMaxChannels];
      for (int64_t c = 0; c < width; ++c) {
        const int64_t channel = c0 + c;
        const double variance = group_squares[group_of(channel)] / count;
        double factor = 1.0 / std::sqrt(variance + static_cast<double>(eps_));
        if (operands_.weight >= 0) factor *= static_cast<double>(floats(inputs[operands_.weight])[channel]);
        const double bias = operands_.bias < 0 ? 0.0 : static_cast<double>(floats(inputs[operands_.bias])[channel]);
        scale[c] = static_cast<float>(factor);
        shift[c] = static_cast<float>(bias - static_cast<double>(mean_of(channel)) * factor);
      }
      write_channels(x, y, n, c0, width, scale, shift, inputs);
    });
  }

  // Sums, or with means sums of squared distances from them.
  void add_channel_sums(const float* x, int64_t n, int64_t c0, int64_t width, const float* means, double* sums) const {
    if (nhwc_) {
      ops_->column_sums(x + n * c_.pixels * in_pitch_ + c0, in_pitch_, c_.pixels, width, means, means != nullptr, sums);
      return;
    }
    for (int64_t c = 0; c < width; ++c) {
      const float* line = x + (n * c_.channels + c0 + c) * c_.pixels;
      sums[c] += means == nullptr ? ops_->sum(line, c_.pixels) : ops_->squares(line, c_.pixels, means[c]);
    }
  }

  void write_channels(const float* x, float* y, int64_t n, int64_t c0, int64_t width, const float* scale,
                      const float* shift, const std::byte* const* inputs) const {
    if (nhwc_) {
      constexpr int64_t kRows = 64;
      for (int64_t p = 0; p < c_.pixels; p += kRows) {
        const int64_t row = n * c_.pixels + p, rows = std::min(kRows, c_.pixels - p);
        float* out = y + row * out_pitch_ + c0;
        ops_->affine(x + row * in_pitch_ + c0, in_pitch_, out, out_pitch_, rows, width, scale, shift);
        if (!epilogue_.empty()) epilogue_.apply(out, out_pitch_, rows, width, row, c0, inputs);
      }
      return;
    }
    for (int64_t c = 0; c < width; ++c) {
      const int64_t at = (n * c_.channels + c0 + c) * c_.pixels;
      ops_->scaled(x + at, y + at, c_.pixels, scale[c], shift[c]);
      if (epilogue_.empty()) continue;
      // Without pixels the channels are the last axis.
      const int64_t cols = std::min(rows_.cols, c_.pixels);
      epilogue_.apply(y + at, cols, c_.pixels / cols, cols, at / rows_.cols, at % rows_.cols, inputs);
    }
  }

  Channels c_;
  int64_t groups_;
  Operands operands_;
  float eps_;
  EpiloguePlan epilogue_;
  const RowOps* ops_;
  bool nhwc_;
  int64_t in_pitch_, out_pitch_;
  RowView rows_;
  int64_t block_groups_ = 1;
};

}  // namespace

namespace {

Refusal serves_row_norm(std::string_view name, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const int64_t axes = call.params.integer("axes", 1);
  Terms terms(name, call);
  terms.plain().hold(axes >= 1 && axes <= x.rank, "takes 1 to ", x.rank, " axes; got ", axes);
  if (!terms.met()) return terms;
  terms.hold(norm_terms(name, call, read_operands(call, true), elems_of_last(x, axes)));
  return terms.met() ? terms.steps_on_rows() : terms;
}

}  // namespace

Refusal serves_layer_norm(const KernelCall& call) { return serves_row_norm("layer_norm", call); }
Refusal serves_rms_norm(const KernelCall& call) { return serves_row_norm("rms_norm", call); }

Refusal serves_group_norm(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  Terms terms("group_norm", call);
  terms.hold(x.rank >= 2, "takes a batch and channels; got ", view_text(x))
      .hold(x.layout == y.layout, "keeps the layout; got ", view_text(x), " to ", view_text(y));
  if (!terms.met()) return terms;
  terms.hold(norm_terms("group_norm", call, read_operands(call, false), x.dims[1]));
  return terms.met() ? terms.steps_on_rows() : terms;
}

std::unique_ptr<Kernel> make_layer_norm(const KernelCall& call) { return std::make_unique<RowNorm>(call, false); }

std::unique_ptr<Kernel> make_rms_norm(const KernelCall& call) { return std::make_unique<RowNorm>(call, true); }

std::unique_ptr<Kernel> make_group_norm(const KernelCall& call) {
  return std::make_unique<GroupNorm>(call, call.params.integer("groups"));
}

namespace {

// In the time of so many multiply-adds of vectors one is added to a sum, or mapped, and a pass over a row begins and
// ends: a sum is added up across its lanes and becomes a factor.
constexpr double kSum = 2.5, kMap = 3.5, kRow = 27;

Work row_norm_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  const TensorView& x = call.inputs[0];
  const bool rms = call.params.text("operator", "") == "rms_norm", adds = call.params.integer("residual", 0) != 0;
  const int64_t n = elems_of_last(x, call.params.integer("axes", 1)), rows = n == 0 ? 0 : x.elems() / n;
  const double bytes = bytes_of(call.inputs) + bytes_of(call.outputs);
  Work work = Work().fetch(bytes, bytes, machine);
  const double sums = rms ? 1 : 2, maps = adds ? 2 : 1;
  work.multiplies = static_cast<double>(rows) * ((sums + maps) * kRow + vectors_of(n) * (sums * kSum + maps * kMap));
  work.grains = std::max<int64_t>(1, rows);
  return work;
}

// Reads its images three times. Of channels side by side each sum waits for the one before.
Work group_norm_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  const Channels c = channels_of(call.inputs[0]);
  const int64_t groups = std::max<int64_t>(1, call.params.integer("groups"));
  constexpr double kWaitingSum = 4;
  const bool nhwc = call.inputs[0].layout == Layout::nhwc;
  const double read = static_cast<double>(call.inputs[0].elem_bytes());
  Work work = Work().fetch(3 * read + bytes_of(call.outputs), 2 * read, machine);
  const auto images = static_cast<double>(c.batch), rows = static_cast<double>(nhwc ? c.pixels : c.channels);
  const double sums = 2 * (nhwc ? kWaitingSum : kSum), vectors = rows * vectors_of(nhwc ? c.channels : c.pixels);
  work.multiplies = images * (vectors * (sums + kMap) + static_cast<double>(nhwc ? groups : c.channels) * 3 * kRow);
  const int64_t together = nhwc ? std::max<int64_t>(1, 16 * groups / std::max<int64_t>(1, c.channels)) : 1;
  work.grains = std::max<int64_t>(1, c.batch * ((groups + together - 1) / together));
  return work;
}

}  // namespace

std::span<const Variant> norm_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "layer_norm",
       .op = "layer_norm",
       .speed = "norm",
       .serves = serves_layer_norm,
       .create = make_layer_norm,
       .layout = LayoutWish::plain,
       .takes_steps = true,
       .work = row_norm_work},
      {.name = "rms_norm",
       .op = "rms_norm",
       .speed = "norm",
       .serves = serves_rms_norm,
       .create = make_rms_norm,
       .layout = LayoutWish::plain,
       .takes_steps = true,
       .work = row_norm_work},
      {.name = "group_norm",
       .op = "group_norm",
       .speed = "norm",
       .serves = serves_group_norm,
       .create = make_group_norm,
       .layout = LayoutWish::kept,
       .takes_steps = true,
       .work = group_norm_work},
      {.name = "batch_norm_training",
       .op = "batch_norm_training",
       .speed = "norm",
       .serves = serves_batch_norm_training,
       .create = make_batch_norm_training,
       .takes_steps = true},
      {.name = "batch_norm_gradient",
       .op = "batch_norm_gradient",
       .speed = "norm",
       .serves = serves_batch_norm_gradient,
       .create = make_batch_norm_gradient},
      {.name = "softmax",
       .op = "softmax",
       .speed = "norm",
       .serves = serves_softmax,
       .create = make_softmax,
       .takes_steps = true,
       .work = softmax_work},
      {.name = "log_softmax",
       .op = "log_softmax",
       .speed = "norm",
       .serves = serves_log_softmax,
       .create = make_log_softmax,
       .takes_steps = true,
       .work = log_softmax_work},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
