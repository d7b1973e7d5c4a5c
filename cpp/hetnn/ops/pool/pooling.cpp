// Windows of pooling operators.
#include "hetnn/ops/pool/pooling.h"

#include <iterator>

namespace hetnn::ops {

void check_pool_window(const Call& call, const Window& window, std::string_view label) {
  const bool padded_little = std::ranges::all_of(
      window, [](const WindowAxis& axis) { return axis.before >= 0 && axis.before * 2 <= axis.kernel; });
  if (is_positive(window) && padded_little) return;
  fail(call, label,
       text("kernel, stride and dilation must be positive and padding at most half the kernel; got kernel ",
            to_string(call.integers("kernel")), ", stride ", to_string(call.integers("stride")), " and padding ",
            to_string(call.integers("padding")), "."));
}

std::vector<Type> infer_pool(const Call& call) {
  const auto id = [&](std::string_view constraint) { return text(call.op->name, "_", constraint); };
  const Type& x = call.input(0);
  if (x.shape.size() != 4)
    fail(call, id("c1"), text("the input must be [N,C,H,W]; got ", to_string(x.shape), ". Check its rank."));
  const Window window = window_of(call);
  check_pool_window(call, window, id("c2"));
  return {{x.dtype, windows_over(call, window, x.shape[1], call.flag("ceil_mode"), id("c4"))}};
}

Work pool_work(const Call& call) {
  return {.macs = 0, .flops = elements(call.output().shape) * taps_of(window_of(call))};
}

std::vector<Metric> pool_metrics(const Call& call) {
  const Window window = window_of(call);
  return {{"kernel_h", window[0].kernel},
          {"kernel_w", window[1].kernel},
          {"stride_h", window[0].stride},
          {"stride_w", window[1].stride}};
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
