// Convolutions that enlarge or shrink images, transposed and strided ones, as convolutions of stride 1.
#include <algorithm>

#include "hetnn/ops/window.h"
#include "hetnn/passes/legal/rules.h"
#include "hetnn/passes/transposed.h"

namespace hetnn::passes::legal {
namespace {

constexpr std::string_view kSums = "the order of sums may differ, and zeros are added; NaN and inf reach further";

std::vector<Dim> dims(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }
int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }
ops::Window window_of(const Match& m) { return ops::window_of(m.root()->call()); }
int64_t groups_of(const Match& m) { return ops::fixed_integer(m.root()->call(), "groups"); }

bool weight_has_arithmetic(const Match& m) { return has_arithmetic(m.tensor("w")->dtype()); }
constexpr Guard kArithmetic = {"the weights are real", weight_has_arithmetic};
bool is_strided(const Match& m) {
  return std::ranges::any_of(window_of(m), [](const ops::WindowAxis& axis) { return axis.stride > 1; });
}
constexpr Guard kStrided = {"the stride is more than 1", is_strided};

Pattern layer(std::string_view name) { return op(name, {any("x"), constant("w"), optional_constant("b")}); }

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

// Channels from pixels: the reverse of channels_to_pixels.
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

Rule transposed_as_phases() {
  return {
      .name = "transposed_as_phases",
      .equation =
          "conv_transpose2d(x, w; stride s) = pixels of conv2d(x, taps of w at i, i + s, ... for each phase i < s), "
          "channels to pixels by permutations",
      .pattern = layer("conv_transpose2d"),
      .guards = {kArithmetic, kStrided},
      .exactness = kSums,
      .rewrite = [](const Match& m, Build& build) { return as_phases(*m.root(), build); }};
}

bool width_is_fixed(const Match& m) { return m.value("x")->shape()[3].is_static() || window_of(m)[0].stride == 1; }

// Whether images of a row and a column or more have such in the result, which a convolution asks for.
bool leaves_something(const Match& m) {
  const ops::Window at = window_of(m);
  const std::vector<int64_t> extra = ops::per_axis(m.root()->call(), "output_padding", 2);
  const Shape& x = m.value("x")->shape();
  return std::ranges::all_of(std::array<size_t, 2>{0, 1}, [&](size_t k) {
    const Dim least = x[2 + k].is_static() ? x[2 + k] : Dim(1);
    return at[k].spread(least, extra[k]).value() > 0;
  });
}

Rule transposed_as_dilated() {
  return {.name = "transposed_as_dilated",
          .equation = "conv_transpose2d(x, w; stride s) = conv2d(x with s - 1 zeros after each pixel, w turned round)",
          .pattern = layer("conv_transpose2d"),
          .guards = {kArithmetic,
                     {"the width of the image is fixed or rows have stride 1", width_is_fixed},
                     {"no result is empty", leaves_something}},
          .exactness = kSums,
          .rewrite = [](const Match& m, Build& build) {
            const ops::Window at = window_of(m);
            const std::vector<int64_t> extra = ops::per_axis(m.root()->call(), "output_padding", 2);
            const int64_t groups = groups_of(m);
            Weight w(*m.tensor("w"));
            const int64_t filters = w.shape[1], channels = w.shape[0] / groups;
            Weight turned({groups * filters, channels, at[0].kernel, at[1].kernel});
            for (int64_t f = 0; f < turned.shape[0]; ++f) {
              for (int64_t c = 0; c < channels; ++c) {
                for (int64_t k = 0; k < at[0].kernel * at[1].kernel; ++k) {
                  const int64_t r = k / at[1].kernel, s = k % at[1].kernel;
                  turned.at(f, c, at[0].kernel - 1 - r, at[1].kernel - 1 - s) =
                      w.at(f / filters * channels + c, f % filters, r, s);
                }
              }
            }
            ir::Value* x = m.value("x");
            const Shape image = x->shape();
            const auto zeros_after = [&](int64_t count) {
              if (count > 0) x = build.op("pad", {x}, {{"padding", dims({0, 0, 0, 0, 0, 0, 0, count})}});
            };
            if (at[1].stride > 1) x = build.reshape(x, {image[0], image[1], image[2] * image[3], 1});
            zeros_after(at[1].stride - 1);
            x = build.reshape(x, {image[0], image[1], image[2], image[3] * at[1].stride});
            if (at[0].stride > 1) zeros_after((at[0].stride - 1) * x->shape()[3].value());
            x = build.reshape(x, {image[0], image[1], image[2] * at[0].stride, image[3] * at[1].stride});
            // What the padding takes away more than the window reaches is cut off.
            std::vector<int64_t> padding(4);
            for (size_t k = 0; k < 2; ++k) {
              const int64_t before = at[k].reach() - 1 - at[k].before;
              const int64_t after = at[k].reach() - 1 - at[k].after + extra[k] - (at[k].stride - 1);
              x = part_of_image(build, x, static_cast<int>(2 + k), std::max<int64_t>(-before, 0),
                                x->shape()[2 + k] - std::max<int64_t>(-after, 0));
              padding[k] = std::max<int64_t>(before, 0);
              padding[2 + k] = std::max<int64_t>(after, 0);
            }
            return build.op("conv2d", {x, turned.constant(build, x->dtype()), m.value("b")},
                            {{"padding", std::vector<Dim>(padding.begin(), padding.end())},
                             {"dilation", dims({at[0].dilation, at[1].dilation})},
                             {"groups", Dim(groups)}});
          }};
}

// Fixed, and not all of what windows see is padding.
bool image_is_fixed(const Match& m) {
  const Shape& x = m.value("x")->shape();
  const auto is_less = [](const ops::WindowAxis& axis) { return axis.before < axis.kernel; };
  return x[2].is_static() && x[3].is_static() && std::ranges::all_of(window_of(m), is_less);
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
        const ops::Window at = window_of(m);
        const int64_t groups = groups_of(m);
        Weight w(*m.tensor("w"));
        const int64_t rows = at[0].stride, columns = at[1].stride;
        const int64_t channels = w.shape[1];
        const std::array<int64_t, 2> taps = {ceil_of(at[0].reach(), rows), ceil_of(at[1].reach(), columns)};
        Weight dense({w.shape[0], rows * columns * channels, taps[0], taps[1]});
        for (int64_t f = 0; f < w.shape[0]; ++f) {
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t k = 0; k < at[0].kernel * at[1].kernel; ++k) {
              const int64_t row = k / at[1].kernel * at[0].dilation, column = k % at[1].kernel * at[1].dilation;
              dense.at(f, ((column % columns) * rows + row % rows) * channels + c, row / rows, column / columns) =
                  w.at(f, c, k / at[1].kernel, k % at[1].kernel);
            }
          }
        }
        // Exactly the pixels that windows begin at or reach: cut off, or padded with zeros.
        ir::Value* x = m.value("x");
        std::vector<Dim> padding(8, 0);
        for (size_t k = 0; k < 2; ++k) {
          const int64_t size = x->shape()[2 + k].value();
          const int64_t wanted = (m.root()->output()->shape()[2 + k].value() + taps[k] - 1) * at[k].stride;
          const int64_t after = wanted - size - at[k].before;
          x = part_of_image(build, x, static_cast<int>(2 + k), 0, size + std::min<int64_t>(after, 0));
          padding[2 + k] = at[k].before;
          padding[6 + k] = std::max<int64_t>(after, 0);
        }
        if (std::any_of(padding.begin(), padding.end(), [](const Dim& p) { return p != Dim(0); }))
          x = build.op("pad", {x}, {{"padding", padding}});
        x = pixels_to_channels(build, x, groups, {rows, columns});
        return build.op("conv2d", {x, dense.constant(build, x->dtype()), m.value("b")}, {{"groups", Dim(groups)}});
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
