// pointwise_depthwise_conv2d: a 1x1 convolution, a function of its result, and a convolution a channel of that.
//
// Each thread computes bands of rows of the result, and for each the rows between that it reads, in scratch that its
// second level keeps; rows that the band before has read too are moved. The kernels are those of conv2d, made for
// bands.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>

#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/packing.h"
#include "hetnn/kernels/query/machine.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kFloat_bytes = 4, kLine_bytes = 64;

// Those of conv2d that compute the parts.
const Variant& pointwise_variant() {
  static const Variant& found = *find_kernel("conv2d_direct");
  return found;
}
const Variant& depthwise_variant() {
  static const Variant& found = *find_kernel("conv2d_depthwise");
  return found;
}

// A call of conv2d for some rows of one image.
struct PartCall {
  std::vector<TensorView> inputs, outputs;
  Params params;
  std::vector<Step> steps;
  KernelCall call() const { return {inputs, outputs, params, steps}; }
};

// Rows [begin, begin + rows) of the result; the rows between that they read, without those beyond the image, of which
// there are so many above and below.
struct Band {
  int64_t begin, rows, in_begin, in_end, above, below;
  int64_t in_rows() const { return in_end - in_begin; }
};

// Inputs x, both weights, their biases where there are any, operands of the steps. Reads the call that it was made of.
class BandedCall {
 public:
  explicit BandedCall(const KernelCall& call)
      : call_(call),
        pointwise_bias_(call.params.integer("pointwise_bias", 0) != 0),
        bias_(call.params.integer("bias", 0) != 0) {}

  size_t own_inputs() const { return size_t{3} + (pointwise_bias_ ? 1 : 0) + (bias_ ? 1 : 0); }
  bool has_pointwise_bias() const { return pointwise_bias_; }
  bool has_bias() const { return bias_; }
  int64_t batch() const { return call_.inputs[0].dims[0]; }
  int64_t channels() const { return call_.inputs[1].dims[0]; }

  PartCall pointwise(int64_t rows) const {
    PartCall part;
    part.inputs = {rows_of(call_.inputs[0], rows), call_.inputs[1]};
    if (pointwise_bias_) part.inputs.push_back(call_.inputs[3]);
    part.outputs = {between(rows)};
    part.params.set("bias", int64_t{pointwise_bias_});
    if (const std::string function = call_.params.text("function", ""); !function.empty())
      part.steps.push_back({.function = function, .values = call_.params.reals("values", {})});
    return part;
  }
  PartCall depthwise(const Band& band, const WindowGeometry* whole) const {
    PartCall part;
    part.inputs = {between(band.in_rows()), call_.inputs[2]};
    if (bias_) part.inputs.push_back(call_.inputs[own_inputs() - 1]);
    const auto first = static_cast<int>(part.inputs.size());
    for (size_t k = own_inputs(); k < call_.inputs.size(); ++k)
      part.inputs.push_back(is_of_rows(k) ? rows_of(call_.inputs[k], band.rows) : of_image(call_.inputs[k]));
    part.outputs = {rows_of(call_.outputs[0], band.rows)};
    part.params = call_.params;
    part.params.set("bias", int64_t{bias_});
    part.params.set("groups", channels());
    if (whole) {
      part.params.set("padding",
                      std::vector<int64_t>{band.above, whole->columns.before, band.below, whole->columns.after});
    }
    part.steps.assign(call_.steps.begin(), call_.steps.end());
    for (Step& step : part.steps)
      if (step.input >= 0) step.input += first - static_cast<int>(own_inputs());
    return part;
  }
  // Of all rows, as the call has its padding.
  PartCall whole_pointwise() const { return pointwise(call_.inputs[0].dims[2]); }
  PartCall whole_depthwise() const {
    return depthwise({0, call_.outputs[0].dims[2], 0, call_.inputs[0].dims[2], 0, 0}, nullptr);
  }

  // Whether an operand of a step has a row for each of the result's.
  bool is_of_rows(size_t input) const {
    return std::ranges::equal(call_.inputs[input].shape(), call_.outputs[0].shape());
  }

 private:
  static TensorView of_image(TensorView view) {
    if (view.rank == 4) view.dims[0] = 1;
    return view;
  }
  static TensorView rows_of(TensorView view, int64_t rows) {
    view.dims[0] = 1;
    view.dims[2] = rows;
    return view;
  }
  TensorView between(int64_t rows) const {
    return TensorView::nhwc(DType::f32, std::array<int64_t, 4>{1, channels(), rows, call_.inputs[0].dims[3]});
  }

  const KernelCall call_;
  bool pointwise_bias_, bias_;
};

Band band_at(const WindowGeometry& g, int64_t begin, int64_t rows) {
  const int64_t first = g.rows.begin(begin), end = g.rows.begin(begin + rows - 1) + g.rows.reach();
  const int64_t in_begin = std::max<int64_t>(first, 0), in_end = std::min(end, g.height);
  return {begin, rows, in_begin, in_end, in_begin - first, end - in_end};
}

// Rows of a band: as many as the second level keeps beside weights, but no more than let so many threads share them
// evenly.
int64_t rows_at_once(const WindowGeometry& g, int64_t images, int64_t threads) {
  const Machine& machine = this_machine();
  const int64_t row_bytes = g.width * g.channels * kFloat_bytes;
  const int64_t kept = machine.cache_bytes[kSecondLevel] / 2 / std::max<int64_t>(1, row_bytes);
  int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= g.out_height; ++rows) {
    const Band band = band_at(g, std::min(rows, g.out_height - rows), rows);
    if (rows > 1 && band.in_rows() > kept) break;
    const int64_t bands = images * ((g.out_height + rows - 1) / rows);
    // Of the thread that has most: rows, and for each band what beginning one costs, in rows.
    constexpr double kBegun = 0.25;
    const int64_t most = (bands + threads - 1) / threads;
    const double cost = static_cast<double>(most) * (static_cast<double>(rows) + kBegun);
    if (cost > least) continue;
    least = cost;
    best = rows;
  }
  return best;
}

class BandedConv final : public Kernel {
 public:
  explicit BandedConv(const KernelCall& call)
      : images_(call.inputs[0].dims[0]),
        own_inputs_(BandedCall(call).own_inputs()),
        pointwise_biased_(BandedCall(call).has_pointwise_bias()),
        biased_(BandedCall(call).has_bias()),
        g_(conv_geometry(BandedCall(call).whole_depthwise().call())),
        x_(rows_in(call.inputs[0])),
        y_(rows_in(call.outputs[0])) {
    const BandedCall parts(call);
    for (size_t k = 0; k < kThreads.size(); ++k) bands_[k] = bands_of(parts, rows_at_once(g_, images_, kThreads[k]));
    for (size_t k = own_inputs_; k < call.inputs.size(); ++k) {
      const TensorView& view = call.inputs[k];
      Lines lines;
      if (parts.is_of_rows(k)) {
        lines = rows_in(view);
      } else if (view.rank == 4 && view.dims[0] > 1) {
        lines.image_bytes = view.pitch_elems * kFloat_bytes;
      }
      operands_.push_back(lines);
    }
    for (const auto* kernels : {&pointwise_, &depthwise_})
      for (const auto& [key, kernel] : *kernels) scratch_bytes_ = std::max(scratch_bytes_, kernel->scratch_bytes(1));
  }

  int64_t scratch_bytes(int threads) const override { return threads * bytes_per_thread(); }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    std::byte* const between = context.scratch + context.thread * bytes_per_thread();
    std::array<const std::byte*, kMostPassedInputs> read;
    SpinBarrier alone(1);
    const RunContext part{0, 1, alone, between + between_bytes(), context.refused};
    const std::vector<Made>& bands = bands_for(context.threads);
    const auto count = static_cast<int64_t>(bands.size());
    const Share share = share_of(images_ * count, context.thread, context.threads);
    for (int64_t number = share.begin; number < share.end; ++number) {
      const int64_t image = number / count;
      const Made& made = bands[static_cast<size_t>(number % count)];
      const bool follows = number > share.begin && made.behind != nullptr;
      const int64_t kept = follows ? made.kept : 0;
      if (kept > 0) std::memmove(between, between + made.kept_from * row_bytes(), kept * row_bytes());
      if (kept < made.band.in_rows()) {
        const std::byte* const x[] = {x_.at(inputs[0], image, made.band.in_begin + kept), inputs[1],
                                      pointwise_biased_ ? inputs[3] : nullptr};
        std::byte* const into = between + kept * row_bytes();
        (follows ? made.behind : made.alone)->run(part, x, &into);
      }
      size_t k = 0;
      read[k++] = between;
      read[k++] = inputs[2];
      if (biased_) read[k++] = inputs[own_inputs_ - 1];
      for (size_t operand = 0; operand < operands_.size(); ++operand)
        read[k++] = operands_[operand].at(inputs[own_inputs_ + operand], image, made.band.begin);
      std::byte* const y = outputs[0] + image * y_.image_bytes + made.band.begin * y_.row_bytes;
      made.depthwise->run(part, read.data(), &y);
    }
  }

 private:
  // Where images and their rows stand.
  struct Lines {
    int64_t image_bytes = 0, row_bytes = 0;
    const std::byte* at(const std::byte* base, int64_t image, int64_t row) const {
      return base + image * image_bytes + row * row_bytes;
    }
  };
  static Lines rows_in(const TensorView& view) {
    const int64_t row = view.dims[3] * view.pitch_elems * kFloat_bytes;
    return {view.dims[2] * row, row};
  }
  struct Made {
    Band band;
    const Kernel* alone = nullptr;   // computes all rows that the band reads,
    const Kernel* behind = nullptr;  // those that the one before has left
    const Kernel* depthwise = nullptr;
    int64_t kept = 0, kept_from = 0;  // rows that the one before had, from which on of its own
  };

  std::vector<Made> bands_of(const BandedCall& parts, int64_t rows) {
    std::vector<Made> bands;
    for (int64_t begin = 0; begin < g_.out_height; begin += rows) {
      const Band band = band_at(g_, begin, std::min(rows, g_.out_height - begin));
      Made made{.band = band};
      made.alone = pointwise_for(parts, band.in_rows());
      if (!bands.empty()) {
        const Band& before = bands.back().band;
        made.kept = std::clamp<int64_t>(before.in_end - band.in_begin, 0, band.in_rows());
        made.kept_from = band.in_begin - before.in_begin;
        made.behind = pointwise_for(parts, band.in_rows() - made.kept);
      }
      made.depthwise = depthwise_for(parts, band);
      most_rows_ = std::max(most_rows_, band.in_rows());
      bands.push_back(made);
    }
    return bands;
  }
  const std::vector<Made>& bands_for(int threads) const {
    const auto at = std::ranges::lower_bound(kThreads, threads);
    return bands_[static_cast<size_t>(std::min(at, kThreads.end() - 1) - kThreads.begin())];
  }
  const Kernel* pointwise_for(const BandedCall& parts, int64_t rows) {
    if (rows == 0) return nullptr;
    auto& made = pointwise_[{rows, 0, 0, 0}];
    if (!made) made = make_kernel(pointwise_variant(), parts.pointwise(rows).call());
    return made.get();
  }
  const Kernel* depthwise_for(const BandedCall& parts, const Band& band) {
    auto& made = depthwise_[{band.rows, band.in_rows(), band.above, band.below}];
    if (!made) made = make_kernel(depthwise_variant(), parts.depthwise(band, &g_).call());
    return made.get();
  }
  int64_t row_bytes() const { return g_.width * g_.channels * kFloat_bytes; }
  int64_t between_bytes() const { return (most_rows_ * row_bytes() + kLine_bytes - 1) / kLine_bytes * kLine_bytes; }
  int64_t bytes_per_thread() const {
    return between_bytes() + (scratch_bytes_ + kLine_bytes - 1) / kLine_bytes * kLine_bytes;
  }

  const int64_t images_;
  const size_t own_inputs_;
  const bool pointwise_biased_, biased_;
  const WindowGeometry g_;  // of the depthwise part of one image
  Lines x_, y_;
  std::vector<Lines> operands_;
  std::map<std::array<int64_t, 4>, std::unique_ptr<const Kernel>> pointwise_, depthwise_;
  // For so many threads, and those up to so many, there are bands of their own.
  static constexpr std::array<int, 6> kThreads = {2, 4, 8, 16, 32, 64};
  std::array<std::vector<Made>, kThreads.size()> bands_;
  int64_t most_rows_ = 0, scratch_bytes_ = 0;
};

Refusal serves_nhwc_bands(const KernelCall& call) {
  const BandedCall parts(call);
  Terms terms("pointwise_depthwise_conv2d", call);
  return terms.steps_on_rows()
      .hold(call.inputs.size() <= kMostPassedInputs, "takes up to ", kMostPassedInputs, " inputs; got ",
            call.inputs.size())
      .then([&] { return pointwise_variant().serves(parts.whole_pointwise().call()); })
      .then([&] { return depthwise_variant().serves(parts.whole_depthwise().call()); })
      .then([&]() -> Refusal {
        const WindowGeometry g = conv_geometry(parts.whole_depthwise().call());
        const bool all_meet =
            g.rows.before < g.rows.reach() && g.rows.after < g.rows.reach() && g.out_height > 0 && g.out_width > 0;
        return terms.hold(all_meet, "takes windows that meet the image; got a padding of ", g.rows.before, " and ",
                          g.rows.after, " rows beside windows of ", g.rows.reach());
      });
}

std::unique_ptr<Kernel> make_nhwc_bands(const KernelCall& call) { return std::make_unique<BandedConv>(call); }

// The call of conv2d that packs that weight.
PartCall part_of(const KernelCall& call, int input) {
  HETNN_ASSERT(is_band_weight(call, input), "inputs 1 and 2 are packed; got ", input);
  const BandedCall parts(call);
  return input == 1 ? parts.whole_pointwise() : parts.whole_depthwise();
}
const Variant& variant_of_part(int input) { return input == 1 ? pointwise_variant() : depthwise_variant(); }

}  // namespace

bool is_band_weight(const KernelCall& /*call*/, int input) { return input == 1 || input == 2; }

Refusal serves_bands(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &pointwise = call.inputs[1], &depthwise = call.inputs[2], &y = call.outputs[0];
  const bool fits = x.rank == 4 && pointwise.rank == 4 && depthwise.rank == 4 && y.rank == 4 &&
                    pointwise.dims[1] == x.dims[1] && pointwise.dims[2] == 1 && pointwise.dims[3] == 1 &&
                    depthwise.dims[0] == pointwise.dims[0] && depthwise.dims[1] == 1;
  return Terms("pointwise_depthwise_conv2d", call)
      .of(DType::f32, BandedCall(call).own_inputs())
      .hold(fits, "takes x [N,I,H,W] and weights [C,I,1,1] and [C,1,KH,KW]; got ", view_text(x), ", ",
            view_text(pointwise), " and ", view_text(depthwise), " for the output ", view_text(y))
      .hold(serves_with_nhwc(call, serves_nhwc_bands));
}

std::unique_ptr<Kernel> make_bands(const KernelCall& call) { return make_with_nhwc(call, make_nhwc_bands); }

int64_t packed_bands_bytes(const KernelCall& call, int input) {
  return variant_of_part(input).packed_bytes(part_of(call, input).call(), 1);
}

std::vector<std::byte> pack_bands(const KernelCall& call, int input, std::span<const std::byte> weight) {
  return variant_of_part(input).pack(part_of(call, input).call(), 1, weight);
}

Work bands_work(const KernelCall& call, const Machine& machine, int threads) {
  const BandedCall parts(call);
  const Work pointwise = pointwise_variant().work(parts.whole_pointwise().call(), machine, threads);
  const Work depthwise = depthwise_variant().work(parts.whole_depthwise().call(), machine, threads);
  const auto images = static_cast<double>(parts.batch());
  const double maps = bytes_of({call.inputs.data(), 1}) + bytes_of(call.outputs);
  Work work = Work().fetch(maps, maps, machine);
  work.multiplies = images * (pointwise.multiplies + depthwise.multiplies);
  for (const int input : {1, 2}) work.bytes[kMemory] += static_cast<double>(packed_bands_bytes(call, input));
  work.grains = parts.batch() * call.outputs[0].dims[2];
  return work;
}

}  // namespace hetnn::kernels
