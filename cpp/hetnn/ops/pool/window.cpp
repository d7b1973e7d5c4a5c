// Windows of pooling operators.
#include "hetnn/ops/pool/window.h"

#include <iterator>

namespace hetnn::ops {

Window window_of(const Call& call) {
  const bool dilated = call.op->find_attr("dilation") != nullptr;
  return {per_axis(call, "kernel", 2), stride_of(call),
          dilated ? per_axis(call, "dilation", 2) : std::vector<int64_t>{1, 1}, padding_of(call)};
}

std::vector<Type> infer_pool(const Call& call) {
  const auto id = [&](std::string_view constraint) { return text(call.op->name, "_", constraint); };
  const Type& x = call.input(0);
  if (x.shape.size() != 4)
    fail(call, id("c1"), text("the input must be [N,C,H,W]; got ", to_string(x.shape), ". Check its rank."));
  const auto [kernel, stride, dilation, pad] = window_of(call);
  Shape y = {x.shape[0], x.shape[1]};
  for (size_t k = 0; k < 2; ++k) {
    if (kernel[k] < 1 || stride[k] < 1 || dilation[k] < 1)
      fail(call, id("c2"),
           text("kernel and stride must be positive; got ", to_string(call.integers("kernel")), " and ",
                to_string(call.integers("stride")), "."));
    if (pad[k] * 2 > kernel[k] || pad[k] < 0)
      fail(call, id("c3"),
           text("padding must be at most half the kernel; got ", to_string(call.integers("padding")), " with kernel ",
                to_string(call.integers("kernel")), "."));
    y.push_back(
        window_size(x.shape[2 + k], kernel[k], stride[k], dilation[k], pad[k], pad[2 + k], call.flag("ceil_mode")));
    if (y.back().is_static() && y.back().value() < 1)
      fail(call, id("c4"),
           text("the window must fit in the padded input; got input ", to_string(x.shape), " and kernel ",
                to_string(call.integers("kernel")), ". Give a larger input."));
  }
  return {{x.dtype, y}};
}

Work pool_work(const Call& call) {
  const auto kernel = per_axis(call, "kernel", 2);
  return {.macs = 0, .flops = elements(call.output().shape) * kernel[0] * kernel[1]};
}

std::vector<Metric> pool_metrics(const Call& call) {
  const Window window = window_of(call);
  return {{"kernel_h", window.kernel[0]},
          {"kernel_w", window.kernel[1]},
          {"stride_h", window.stride[0]},
          {"stride_w", window.stride[1]}};
}

std::vector<AttrDef> pool_attrs(std::vector<AttrDef> own) {
  std::vector<AttrDef> attrs = {
      {"kernel", AttrKind::integers, std::nullopt, "height, width"},
      {"stride", AttrKind::integers, std::vector<Dim>{}, "height, width; empty: the kernel"},
      {"padding", AttrKind::integers, std::vector<Dim>{0, 0}, "height, width; or top, left, bottom, right"}};
  attrs.insert(attrs.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  attrs.push_back({"ceil_mode", AttrKind::boolean, false, "whether a last, partial window counts"});
  return attrs;
}

}  // namespace hetnn::ops
