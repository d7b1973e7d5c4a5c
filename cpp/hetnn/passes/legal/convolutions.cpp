// Convolutions and linear layers of one kind by those of another.
#include <algorithm>
#include <array>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/window.h"
#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
namespace {

constexpr std::string_view kSums = "the order of sums may differ; nothing else";

ops::Window window_of(const Match& m) { return ops::window_of(m.root()->call()); }
std::vector<Dim> dims(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }

bool weight_has_arithmetic(const Match& m) { return has_arithmetic(m.tensor("w")->dtype()); }
constexpr Guard kArithmetic = {"the weights are real", weight_has_arithmetic};

Pattern layer(std::string_view name) { return op(name, {any("x"), constant("w"), optional_constant("b")}); }

Rule linear_as_convolution() {
  return {.name = "linear_as_convolution",
          .equation = "linear(x, w) = conv2d(x as [rows, K, 1, 1], w as [M, K, 1, 1])",
          .pattern = layer("linear"),
          .guards = {{"input and weight are of one element type, or integers of two",
                      [](const Match& m) { return ops::agree(m.value("x")->type(), m.value("w")->type()); }}},
          .exactness = kSums,
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            const Tensor& w = *m.tensor("w");
            ir::Value* image = build.reshape(x, {elements(x->shape(), 0, x->rank() - 1), x->shape().back(), 1, 1});
            ir::Value* kernel = build.constant(w.reshaped({w.shape()[0], w.shape()[1], 1, 1}));
            return build.reshape(build.op("conv2d", {image, kernel, m.value("b")}), m.root()->output()->shape());
          }};
}

bool covers_the_image(const Match& m) {
  const Shape &x = m.value("x")->shape(), &w = m.value("w")->shape();
  const auto is_plain = [](const ops::WindowAxis& axis) { return !axis.is_padded() && axis.dilation == 1; };
  return x[2] == w[2] && x[3] == w[3] && std::ranges::all_of(window_of(m), is_plain) &&
         m.root()->integer("groups") == Dim(1);
}

Rule convolution_as_linear() {
  return {
      .name = "convolution_as_linear",
      .equation = "conv2d(x, w) = linear(x as [N, C H W], w as [M, C H W]), a kernel as large as the image",
      .pattern = layer("conv2d"),
      .guards = {{"the kernel covers the image: no padding, groups or dilation", covers_the_image}},
      .exactness = kSums,
      .rewrite = [](const Match& m, Build& build) {
        ir::Value* x = m.value("x");
        const Tensor& w = *m.tensor("w");
        ir::Value* rows = build.reshape(x, {x->shape()[0], elements(x->shape(), 1)});
        ir::Value* matrix = build.constant(w.reshaped({w.shape()[0], w.elems() / std::max<int64_t>(w.shape()[0], 1)}));
        return build.reshape(build.op("linear", {rows, matrix, m.value("b")}), m.root()->output()->shape());
      }};
}

bool is_grouped(const Match& m) { return m.root()->integer("groups") != Dim(1); }

Rule grouped_as_plain() {
  return {.name = "grouped_as_plain",
          .equation = "conv2d(x, w; g groups) = conv2d(x, w with zeros between the groups)",
          .pattern = layer("conv2d"),
          .guards = {kArithmetic, {"there is more than one group", is_grouped}},
          .exactness = "exact for finite inputs; NaN and inf spread over the channels through 0 * inf",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            const Tensor& w = *m.tensor("w");
            const int64_t groups = m.root()->integer("groups").value(), filters = w.shape()[0], each = w.shape()[1];
            const int64_t area = w.shape()[2] * w.shape()[3], channels = each * groups;
            if (!build.affords(w.dtype(), std::array{filters, channels, area})) return nullptr;
            const std::vector<double> values = to_doubles(w);
            std::vector<double> full(static_cast<size_t>(filters * channels * area), 0);
            for (int64_t f = 0; f < filters; ++f) {
              const int64_t first = f / (filters / groups) * each;
              std::copy_n(values.begin() + f * each * area, each * area, full.begin() + (f * channels + first) * area);
            }
            ir::Value* kernel = build.constant(w.dtype(), {filters, channels, w.shape()[2], w.shape()[3]}, full);
            return build.like(*m.root(), {m.value("x"), kernel, m.value("b")}, {{"groups", Dim(1)}});
          }};
}

bool is_dilated(const Match& m) {
  return std::ranges::any_of(window_of(m), [](const ops::WindowAxis& axis) { return axis.dilation > 1; });
}

Rule dilated_as_sparse() {
  return {.name = "dilated_as_larger_kernel",
          .equation = "conv2d(x, w; dilation d) = conv2d(x, w with d - 1 zeros between its taps)",
          .pattern = layer("conv2d"),
          .guards = {kArithmetic, {"the dilation is more than 1", is_dilated}},
          .exactness = "exact for finite inputs; NaN and inf reach further through 0 * inf",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            const Tensor& w = *m.tensor("w");
            const ops::Window window = window_of(m);
            const int64_t height = window[0].kernel, width = window[1].kernel;
            const int64_t tall = window[0].reach(), wide = window[1].reach();
            const int64_t planes = w.shape()[0] * w.shape()[1];
            if (!build.affords(w.dtype(), std::array{planes, tall, wide})) return nullptr;
            const std::vector<double> values = to_doubles(w);
            std::vector<double> sparse(static_cast<size_t>(planes * tall * wide), 0);
            for (int64_t p = 0; p < planes; ++p) {
              for (int64_t r = 0; r < height; ++r) {
                for (int64_t c = 0; c < width; ++c) {
                  sparse[static_cast<size_t>((p * tall + r * window[0].dilation) * wide + c * window[1].dilation)] =
                      values[static_cast<size_t>((p * height + r) * width + c)];
                }
              }
            }
            ir::Value* kernel = build.constant(w.dtype(), {w.shape()[0], w.shape()[1], tall, wide}, sparse);
            return build.like(*m.root(), {m.value("x"), kernel, m.value("b")}, {{"dilation", dims({1, 1})}});
          }};
}

bool is_strided(const Match& m) {
  return std::ranges::any_of(window_of(m), [](const ops::WindowAxis& axis) { return axis.stride > 1; });
}

// y[i·s] for every output i: a 1×1 pooling window that steps by s.
Rule strided_as_subsampled() {
  return {
      .name = "strided_as_subsampled",
      .equation = "conv2d(x, w; stride s) = max_pool2d(conv2d(x, w; stride 1); kernel 1, stride s)",
      .pattern = layer("conv2d"),
      .guards = {{"the stride is more than 1", is_strided}},
      .exactness = "bit for bit",
      .rewrite = [](const Match& m, Build& build) {
        ir::Value* dense =
            build.like(*m.root(), {m.value("x"), m.value("w"), m.value("b")}, {{"stride", dims({1, 1})}});
        return build.op("max_pool2d", {dense}, {{"kernel", dims({1, 1})}, {"stride", ops::stride_attr(window_of(m))}});
      }};
}

bool has_uneven_padding(const Match& m) {
  return std::ranges::any_of(window_of(m), [](const ops::WindowAxis& axis) { return axis.before != axis.after; });
}

Rule uneven_padding() {
  return {.name = "uneven_padding_as_pad",
          .equation = "conv2d(x, w; padding t,l,b,r) = conv2d(pad(x; t,l,b,r), w)",
          .pattern = layer("conv2d"),
          .guards = {{"the padding differs between opposite sides", has_uneven_padding}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            const auto [rows, columns] = std::pair(window_of(m)[0], window_of(m)[1]);
            ir::Value* padded =
                build.op("pad", {m.value("x")},
                         {{"padding", dims({0, 0, rows.before, columns.before, 0, 0, rows.after, columns.after})}});
            return build.like(*m.root(), {padded, m.value("w"), m.value("b")}, {{"padding", dims({0, 0})}});
          }};
}

}  // namespace

const RuleSet& convolutions() {
  static const RuleSet set = {"convolutions",
                              "Convolutions and linear layers of one kind by those of another.",
                              {linear_as_convolution(), convolution_as_linear(), grouped_as_plain(),
                               dilated_as_sparse(), strided_as_subsampled(), uneven_padding()}};
  return set;
}

}  // namespace hetnn::passes::legal
