// Windows read from calls, and how many of them lie over a shape.
#include "hetnn/ops/window.h"

namespace hetnn::ops {
namespace {

std::vector<int64_t> kernel_of(const Call& call, size_t axes) {
  for (const std::string_view name : {"kernel", "block"}) {
    if (call.op->find_attr(name)) return per_axis(call, name, axes);
  }
  const Shape& weight = call.input(1).shape;
  return values(Shape(weight.end() - static_cast<std::ptrdiff_t>(axes), weight.end()));
}

}  // namespace

Window window_of(const Call& call, size_t axes) {
  const std::vector<int64_t> kernel = kernel_of(call, axes);
  const auto given = [&](std::string_view name, const std::vector<int64_t>& otherwise) {
    return call.op->find_attr(name) && !call.integers(name).empty() ? per_axis(call, name, axes) : otherwise;
  };
  const std::vector<int64_t> stride = given("stride", kernel),
                             dilation = given("dilation", std::vector<int64_t>(axes, 1));
  const bool both = call.integers("padding").size() == 2 * axes;
  const std::vector<int64_t> padding = per_axis(call, "padding", both ? 2 * axes : axes);
  Window out;
  for (size_t k = 0; k < axes; ++k)
    out.push_back({kernel[k], stride[k], dilation[k], padding[k], padding[both ? axes + k : k]});
  return out;
}

int64_t taps_of(const Window& window) {
  int64_t out = 1;
  for (const WindowAxis& axis : window) out *= axis.kernel;
  return out;
}

bool is_positive(const Window& window) {
  return std::ranges::all_of(
      window, [](const WindowAxis& axis) { return axis.kernel > 0 && axis.stride > 0 && axis.dilation > 0; });
}

std::vector<Dim> stride_attr(const Window& window) {
  std::vector<Dim> out;
  for (const WindowAxis& axis : window) out.emplace_back(axis.stride);
  return out;
}

std::vector<Dim> padding_attr(const Window& window) {
  std::vector<Dim> out;
  for (const WindowAxis& axis : window) out.emplace_back(axis.before);
  for (const WindowAxis& axis : window) out.emplace_back(axis.after);
  return out;
}

Shape windows_over(const Call& call, const Window& window, const Dim& channels, bool ceil_mode,
                   std::string_view label) {
  const Shape& x = call.input(0).shape;
  Shape y = {x[0], channels};
  for (size_t k = 0; k < window.size(); ++k) {
    y.push_back(window[k].count(x[2 + k], ceil_mode));
    if (!y.back().is_static() || y.back().value() >= 1) continue;
    fail(call, label,
         text("the window must fit in the padded input; got input ", to_string(x), " and along axis ", 2 + k, " ",
              window[k].kernel, " taps ", window[k].dilation, " apart. Give a larger input."));
  }
  return y;
}

}  // namespace hetnn::ops
