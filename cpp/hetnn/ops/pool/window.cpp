// Windows of pooling operators.
#include "hetnn/ops/pool/window.h"

#include <iterator>

namespace hetnn::ops {

Window window_of(const ir::Node& node) {
  const bool dilated = node.op().find_attr("dilation") != nullptr;
  return {per_axis(node, "kernel", 2), stride_of(node),
          dilated ? per_axis(node, "dilation", 2) : std::vector<int64_t>{1, 1}, padding_of(node)};
}

std::vector<ir::Type> infer_pool(const ir::Node& node) {
  const auto id = [&](std::string_view constraint) { return text(node.op().name, "_", constraint); };
  const ir::Type& x = node.input(0)->type();
  if (x.shape.size() != 4)
    ir::fail(node, id("c1"), text("the input must be [N,C,H,W]; got ", to_string(x.shape), ". Check its rank."));
  const auto [kernel, stride, dilation, pad] = window_of(node);
  Shape y = {x.shape[0], x.shape[1]};
  for (size_t k = 0; k < 2; ++k) {
    if (kernel[k] < 1 || stride[k] < 1 || dilation[k] < 1)
      ir::fail(node, id("c2"),
               text("kernel and stride must be positive; got ", to_string(node.integers("kernel")), " and ",
                    to_string(node.integers("stride")), "."));
    if (pad[k] * 2 > kernel[k] || pad[k] < 0)
      ir::fail(node, id("c3"),
               text("padding must be at most half the kernel; got ", to_string(node.integers("padding")),
                    " with kernel ", to_string(node.integers("kernel")), "."));
    y.push_back(
        window_size(x.shape[2 + k], kernel[k], stride[k], dilation[k], pad[k], pad[2 + k], node.flag("ceil_mode")));
    if (y.back().is_static() && y.back().value() < 1)
      ir::fail(node, id("c4"),
               text("the window must fit in the padded input; got input ", to_string(x.shape), " and kernel ",
                    to_string(node.integers("kernel")), ". Give a larger input."));
  }
  return {{x.dtype, y}};
}

ir::Work pool_work(const ir::Node& node) {
  const auto kernel = per_axis(node, "kernel", 2);
  return {.macs = 0, .flops = elements(node.output()->shape()) * kernel[0] * kernel[1]};
}

std::vector<ir::Metric> pool_metrics(const ir::Node& node) {
  const Window window = window_of(node);
  return {{"kernel_h", window.kernel[0]},
          {"kernel_w", window.kernel[1]},
          {"stride_h", window.stride[0]},
          {"stride_w", window.stride[1]}};
}

std::vector<ir::AttrDef> pool_attrs(std::vector<ir::AttrDef> own) {
  std::vector<ir::AttrDef> attrs = {
      {"kernel", ir::AttrKind::integers, std::nullopt, "height, width"},
      {"stride", ir::AttrKind::integers, std::vector<Dim>{}, "height, width; empty: the kernel"},
      {"padding", ir::AttrKind::integers, std::vector<Dim>{0, 0}, "height, width; or top, left, bottom, right"}};
  attrs.insert(attrs.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  attrs.push_back({"ceil_mode", ir::AttrKind::boolean, false, "whether a last, partial window counts"});
  return attrs;
}

KernelChoice pool_kernel(const std::string& kernel, std::vector<std::string> own) {
  own.insert(own.begin(), {"kernel", "padding"});
  return [choice =
              named_kernel(kernel, std::move(own), ir::KernelUse::Layout::channels_last, true)](const ir::Node& node) {
    ir::KernelUse use = choice(node);
    const auto stride = stride_of(node);
    use.params["stride"] = std::vector<Dim>(stride.begin(), stride.end());
    return use;
  };
}

}  // namespace hetnn::ops
