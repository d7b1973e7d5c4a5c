// Convolutions that enlarge or shrink images, transposed and strided ones, as convolutions of stride 1.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
namespace {

constexpr std::string_view kSums = "the order of sums may differ, and zeros are added; NaN and inf reach further";

std::vector<Dim> dims(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }
int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }
std::array<int64_t, 2> pair_of(const ir::Node& node, std::string_view attr) {
  const std::vector<int64_t> given = ops::per_axis(node.call(), attr, 2);
  return {given[0], given[1]};
}

bool weight_has_arithmetic(const Match& m) { return has_arithmetic(m.tensor("w")->dtype()); }
constexpr Guard kArithmetic = {"the weights are real", weight_has_arithmetic};
bool is_strided(const Match& m) {
  const auto stride = pair_of(*m.root(), "stride");
  return stride[0] > 1 || stride[1] > 1;
}
constexpr Guard kStrided = {"the stride is more than 1", is_strided};

Pattern layer(std::string_view name) { return op(name, {any("x"), constant("w"), optional_constant("b")}); }

// Everything about a window along height (0) and width (1).
struct Windows {
  std::array<int64_t, 2> kernel, stride, dilation, reach, before, after;
  int64_t groups;
};
Windows windows_of(const ir::Node& node) {
  const Shape& w = node.input(1)->shape();
  const std::vector<int64_t> p = ops::padding_of(node.call());
  Windows out{{w[2].value(), w[3].value()},
              pair_of(node, "stride"),
              pair_of(node, "dilation"),
              {},
              {p[0], p[1]},
              {p[2], p[3]},
              ops::fixed_integer(node.call(), "groups")};
  for (size_t k = 0; k < 2; ++k) out.reach[k] = out.dilation[k] * (out.kernel[k] - 1) + 1;
  return out;
}

// Four indices of a weight, flat.
struct Weight {
  std::vector<double> values;
  std::array<int64_t, 4> shape;
  Weight(std::vector<double> v, std::array<int64_t, 4> s) : values(std::move(v)), shape(s) {}
  explicit Weight(std::array<int64_t, 4> s)
      : Weight(std::vector<double>(static_cast<size_t>(s[0] * s[1] * s[2] * s[3]), 0), s) {}
  explicit Weight(const Tensor& w) : Weight(to_doubles(w), {w.shape()[0], w.shape()[1], w.shape()[2], w.shape()[3]}) {}
  double& at(int64_t a, int64_t b, int64_t c, int64_t d) {
    return values[static_cast<size_t>(((a * shape[1] + b) * shape[2] + c) * shape[3] + d)];
  }
  ir::Value* constant(Build& build, DType dtype) const {
    return build.constant(dtype, {shape.begin(), shape.end()}, values);
  }
};

// Rows (axis 2) or columns (axis 3) of x in [begin, end).
ir::Value* part(Build& build, ir::Value* x, int axis, const Dim& begin, const Dim& end) {
  if (begin == Dim(0) && end == x->shape()[static_cast<size_t>(axis)]) return x;
  return build.op("slice", {x}, {{"axis", Dim(axis)}, {"start", begin}, {"end", end}, {"inside", true}});
}

// Pixels from channels: y[n, g·M + m, h·s0 + i, w·s1 + j] = x[n, ((g·s1 + j)·s0 + i)·M + m, h, w], one axis after the
// other, so that no value has more than four axes.
ir::Value* channels_to_pixels(Build& build, ir::Value* x, int64_t groups, std::array<int64_t, 2> stride) {
  const Shape& shape = x->shape();
  const int64_t filters = shape[1].value() / groups / stride[0] / stride[1];
  const Dim batch = shape[0] * groups, height = shape[2], width = shape[3];
  ir::Value* y = x;
  if (stride[1] > 1) {
    y = build.reshape(y, {batch, stride[1], height * width * (stride[0] * filters)});
    y = build.op("permute", {y}, {{"perm", dims({0, 2, 1})}});
  }
  if (stride[0] > 1) {
    y = build.reshape(y, {batch, stride[0], height * filters, width * stride[1]});
    y = build.op("permute", {y}, {{"perm", dims({0, 2, 1, 3})}});
  }
  return build.reshape(y, {shape[0], groups * filters, height * stride[0], width * stride[1]});
}

// The reverse.
ir::Value* pixels_to_channels(Build& build, ir::Value* x, int64_t groups, std::array<int64_t, 2> stride) {
  const Shape& shape = x->shape();
  const int64_t channels = shape[1].value() / groups;
  const Dim batch = shape[0] * groups, height = shape[2].value() / stride[0], width = shape[3].value() / stride[1];
  ir::Value* y = x;
  if (stride[0] > 1) {
    y = build.reshape(y, {batch, height * channels, stride[0], shape[3]});
    y = build.op("permute", {y}, {{"perm", dims({0, 2, 1, 3})}});
  }
  if (stride[1] > 1) {
    y = build.reshape(y, {batch, height * width * (stride[0] * channels), stride[1]});
    y = build.op("permute", {y}, {{"perm", dims({0, 2, 1})}});
  }
  return build.reshape(y, {shape[0], shape[1] * (stride[0] * stride[1]), height, width});
}

// Outputs whose places agree modulo the stride share their taps: each such phase is a dense convolution of its own, and
// all of them are one convolution with a filter for every phase.
Rule transposed_as_phases() {
  return {
      .name = "transposed_as_phases",
      .equation =
          "conv_transpose2d(x, w; stride s) = pixels of conv2d(x, taps of w at i, i + s, ... for each phase i < s), "
          "channels to pixels by permutations",
      .pattern = layer("conv_transpose2d"),
      .guards = {kArithmetic, kStrided},
      .exactness = kSums,
      .rewrite = [](const Match& m, Build& build) {
        const Windows at = windows_of(*m.root());
        const auto extra = pair_of(*m.root(), "output_padding");
        Weight w(*m.tensor("w"));
        const int64_t rows = at.stride[0], columns = at.stride[1];
        const int64_t filters = w.shape[1], channels = w.shape[0] / at.groups, phases = rows * columns;
        std::array<int64_t, 2> taps{};
        for (size_t k = 0; k < 2; ++k)
          taps[k] = ceil_of(at.reach[k] + std::max<int64_t>(extra[k] - at.after[k], 0), at.stride[k]);
        Weight dense({at.groups * phases * filters, channels, taps[0], taps[1]});
        std::vector<double> bias(static_cast<size_t>(dense.shape[0]), 0), given;
        if (const Tensor* b = m.tensor("b")) given = to_doubles(*b);
        const auto one = [&](int64_t g, int64_t f, int64_t r, int64_t s) {
          const int64_t row = r * at.dilation[0], column = s * at.dilation[1];
          const int64_t to = ((g * columns + column % columns) * rows + row % rows) * filters + f;
          for (int64_t c = 0; c < channels; ++c) {
            dense.at(to, c, taps[0] - 1 - row / rows, taps[1] - 1 - column / columns) = w.at(g * channels + c, f, r, s);
          }
        };
        for (int64_t g = 0; g < at.groups; ++g) {
          for (int64_t f = 0; f < filters; ++f) {
            for (int64_t k = 0; k < at.kernel[0] * at.kernel[1]; ++k) one(g, f, k / at.kernel[1], k % at.kernel[1]);
            for (int64_t phase = 0; phase < phases && !given.empty(); ++phase) {
              bias[static_cast<size_t>((g * phases + phase) * filters + f)] =
                  given[static_cast<size_t>(g * filters + f)];
            }
          }
        }
        const DType dtype = m.value("x")->dtype();
        ir::Value* shift = given.empty() ? nullptr : build.constant(dtype, {dense.shape[0]}, bias);
        ir::Value* y = build.op("conv2d", {m.value("x"), dense.constant(build, dtype), shift},
                                {{"padding", dims({taps[0] - 1, taps[1] - 1})}, {"groups", Dim(at.groups)}});
        y = channels_to_pixels(build, y, at.groups, at.stride);
        for (size_t k = 0; k < 2; ++k) {
          const Dim first = at.before[k];
          y = part(build, y, 2 + static_cast<int>(k), first, m.root()->output()->shape()[2 + k] + first);
        }
        return y;
      }};
}

bool width_is_fixed(const Match& m) {
  return m.value("x")->shape()[3].is_static() || pair_of(*m.root(), "stride")[0] == 1;
}

Rule transposed_as_dilated() {
  return {.name = "transposed_as_dilated",
          .equation = "conv_transpose2d(x, w; stride s) = conv2d(x with s - 1 zeros after each pixel, w turned round)",
          .pattern = layer("conv_transpose2d"),
          .guards = {kArithmetic, {"the width of the image is fixed or rows have stride 1", width_is_fixed}},
          .exactness = kSums,
          .rewrite = [](const Match& m, Build& build) {
            const Windows at = windows_of(*m.root());
            const auto extra = pair_of(*m.root(), "output_padding");
            Weight w(*m.tensor("w"));
            const int64_t filters = w.shape[1], channels = w.shape[0] / at.groups;
            Weight turned({at.groups * filters, channels, at.kernel[0], at.kernel[1]});
            for (int64_t f = 0; f < turned.shape[0]; ++f) {
              for (int64_t c = 0; c < channels; ++c) {
                for (int64_t k = 0; k < at.kernel[0] * at.kernel[1]; ++k) {
                  const int64_t r = k / at.kernel[1], s = k % at.kernel[1];
                  turned.at(f, c, at.kernel[0] - 1 - r, at.kernel[1] - 1 - s) =
                      w.at(f / filters * channels + c, f % filters, r, s);
                }
              }
            }
            ir::Value* x = m.value("x");
            const Shape image = x->shape();
            const auto zeros_after = [&](int64_t count) {
              if (count > 0) x = build.op("pad", {x}, {{"padding", dims({0, 0, 0, 0, 0, 0, 0, count})}});
            };
            if (at.stride[1] > 1) x = build.reshape(x, {image[0], image[1], image[2] * image[3], 1});
            zeros_after(at.stride[1] - 1);
            x = build.reshape(x, {image[0], image[1], image[2], image[3] * at.stride[1]});
            if (at.stride[0] > 1) zeros_after((at.stride[0] - 1) * x->shape()[3].value());
            x = build.reshape(x, {image[0], image[1], image[2] * at.stride[0], image[3] * at.stride[1]});
            // What the padding takes away more than the window reaches is cut off.
            std::vector<int64_t> padding(4);
            for (size_t k = 0; k < 2; ++k) {
              const int64_t before = at.reach[k] - 1 - at.before[k];
              const int64_t after = at.reach[k] - 1 - at.after[k] + extra[k] - (at.stride[k] - 1);
              x = part(build, x, static_cast<int>(2 + k), std::max<int64_t>(-before, 0),
                       x->shape()[2 + k] - std::max<int64_t>(-after, 0));
              padding[k] = std::max<int64_t>(before, 0);
              padding[2 + k] = std::max<int64_t>(after, 0);
            }
            return build.op("conv2d", {x, turned.constant(build, x->dtype()), m.value("b")},
                            {{"padding", std::vector<Dim>(padding.begin(), padding.end())},
                             {"dilation", dims({at.dilation[0], at.dilation[1]})},
                             {"groups", Dim(at.groups)}});
          }};
}

// Fixed, and not all of what windows see is padding.
bool image_is_fixed(const Match& m) {
  const Shape& x = m.value("x")->shape();
  const std::vector<int64_t> p = ops::padding_of(m.root()->call());
  return x[2].is_static() && x[3].is_static() && p[0] < m.tensor("w")->shape()[2] && p[1] < m.tensor("w")->shape()[3];
}

// The pixels of one step become channels, so that a window moves by one.
Rule strided_as_channels() {
  return {
      .name = "strided_as_channels",
      .equation =
          "conv2d(x, w; stride s) = conv2d(x with the pixels of s x s as channels, w likewise; stride 1), pixels to "
          "channels by permutations",
      .pattern = layer("conv2d"),
      .guards = {kArithmetic,
                 kStrided,
                 {"the size of the image is fixed, and windows are larger than the padding", image_is_fixed}},
      .exactness = kSums,
      .rewrite = [](const Match& m, Build& build) {
        const Windows at = windows_of(*m.root());
        Weight w(*m.tensor("w"));
        const auto [rows, columns] = at.stride;
        const int64_t channels = w.shape[1];
        const std::array<int64_t, 2> taps = {ceil_of(at.reach[0], rows), ceil_of(at.reach[1], columns)};
        Weight dense({w.shape[0], rows * columns * channels, taps[0], taps[1]});
        for (int64_t f = 0; f < w.shape[0]; ++f) {
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t k = 0; k < at.kernel[0] * at.kernel[1]; ++k) {
              const int64_t row = k / at.kernel[1] * at.dilation[0], column = k % at.kernel[1] * at.dilation[1];
              dense.at(f, ((column % columns) * rows + row % rows) * channels + c, row / rows, column / columns) =
                  w.at(f, c, k / at.kernel[1], k % at.kernel[1]);
            }
          }
        }
        // Exactly the pixels that windows begin at or reach: cut off, or padded with zeros.
        ir::Value* x = m.value("x");
        std::vector<Dim> padding(8, 0);
        for (size_t k = 0; k < 2; ++k) {
          const int64_t size = x->shape()[2 + k].value();
          const int64_t wanted = (m.root()->output()->shape()[2 + k].value() + taps[k] - 1) * at.stride[k];
          const int64_t after = wanted - size - at.before[k];
          x = part(build, x, static_cast<int>(2 + k), 0, size + std::min<int64_t>(after, 0));
          padding[2 + k] = at.before[k];
          padding[6 + k] = std::max<int64_t>(after, 0);
        }
        if (std::any_of(padding.begin(), padding.end(), [](const Dim& p) { return p != Dim(0); }))
          x = build.op("pad", {x}, {{"padding", padding}});
        x = pixels_to_channels(build, x, at.groups, at.stride);
        return build.op("conv2d", {x, dense.constant(build, x->dtype()), m.value("b")}, {{"groups", Dim(at.groups)}});
      }};
}

bool is_border_of_zeros(const Match& m) {
  const ir::Node& pad = *m.root();
  const bool zeros = pad.string("mode") == std::string_view("constant") && pad.real("value") == 0;
  const std::vector<Dim>& given = pad.integers("padding");
  const bool fixed = std::all_of(given.begin(), given.end(), [](const Dim& dim) { return dim.is_static(); });
  if (!zeros || !fixed || m.value("x")->rank() != 4) return false;
  const std::vector<int64_t> p = ops::per_axis(pad.call(), "padding", 8);
  return p[0] == 0 && p[1] == 0 && p[4] == 0 && p[5] == 0 &&
         std::all_of(p.begin(), p.end(), [](int64_t count) { return count >= 0; });
}

Rule pad_as_depthwise() {
  return {.name = "pad_as_depthwise",
          .equation = "pad(x; zeros around the image) = depthwise conv2d(x, 1; as much padding)",
          .pattern = op("pad", {any("x")}),
          .guards = {kChannelsFixed, {"zeros around the rows and columns of images", is_border_of_zeros}},
          .exactness = "bit for bit; a zero may change its sign",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            const std::vector<int64_t> p = ops::per_axis(m.root()->call(), "padding", 8);
            const std::vector<double> one(channel_count(*x), 1);
            const auto channels = static_cast<int64_t>(one.size());
            return build.op("conv2d", {x, build.constant(x->dtype(), {channels, 1, 1, 1}, one)},
                            {{"padding", dims({p[2], p[3], p[6], p[7]})}, {"groups", Dim(channels)}});
          }};
}

}  // namespace

const RuleSet& strides() {
  static const RuleSet set = {
      "strides",
      "Transposed and strided convolutions as convolutions of stride 1.",
      {transposed_as_phases(), transposed_as_dilated(), strided_as_channels(), pad_as_depthwise()}};
  return set;
}

}  // namespace hetnn::passes::legal
