// pad: a border of a value, or of mirrored or repeated elements.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<int64_t> padding(const Call& call) {
  return per_axis(call, "padding", 2 * static_cast<size_t>(call.input(0).rank()));
}

std::vector<Type> infer(const Call& call) {
  const std::string& mode = call.string("mode");
  if (mode != "constant" && mode != "reflect" && mode != "replicate" && mode != "circular") {
    fail(call, "pad_c1", text("mode must be constant, reflect, replicate or circular; got ", mode, "."));
  }
  const auto pad = padding(call);
  Shape y = call.input(0).shape;
  for (size_t k = 0; k < y.size(); ++k) {
    y[k] = y[k] + pad[k] + pad[k + y.size()];
    if (y[k].is_static() && y[k].value() < 0)
      fail(call, "pad_c2",
               text("padding must not crop more than there is; got ", to_string(call.integers("padding")), " for ",
                    to_string(call.input(0).shape), "."));
  }
  return {{call.input(0).dtype, y}};
}

// The input's index for index `at` beyond its border; -1: the constant.
int64_t source_index(int64_t at, int64_t size, const std::string& mode) {
  if (at >= 0 && at < size) return at;
  if (mode == "constant" || size == 0) return -1;
  if (mode == "replicate") return at < 0 ? 0 : size - 1;
  if (mode == "circular") return (at % size + size) % size;
  const int64_t period = size > 1 ? 2 * (size - 1) : 1, folded = (at % period + period) % period;
  return folded < size ? folded : period - folded;
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor& x = e.input(0);
  const auto pad = padding(e.call);
  const std::vector<int64_t> strides = strides_of(x.shape());
  const std::string& mode = e.call.string("mode");
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), e.output_shape(), &data);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto in = x.values<T>();
    T* to = mutable_values<T>(data);
    for_each_index(y.shape(), [&](const std::vector<int64_t>& index) {
      int64_t from = 0;
      for (size_t d = 0; d < index.size() && from >= 0; ++d) {
        const int64_t at = source_index(index[d] - pad[d], x.shape()[d], mode);
        from = at < 0 ? -1 : from + at * strides[d];
      }
      *to++ = from < 0 ? static_cast<T>(e.call.real("value")) : in[static_cast<size_t>(from)];
    });
  });
  return {y};
}

}  // namespace

OpDef define_pad() {
  return {.name = "pad",
          .doc = "A border of a value, or of mirrored, repeated or wrapped elements; negative sizes crop.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"padding", AttrKind::integers, std::nullopt,
                     "elements before every axis, then elements behind every axis"},
                    {"mode", AttrKind::string, std::string("constant"), "constant, reflect, replicate or circular"},
                    {"value", AttrKind::real, 0.0, "the constant"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {},
          .onnx = {},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .kernel = named_kernel("pad", {"padding", "mode", "value"}),
          .tolerance = 0,
          .samples = {"pad(f32[1,2,3,4]) {padding = [0,0,1,2,0,0,0,1], value = 1.5}",
                      "pad(f32[1,2,5,h]) {padding = [0,0,2,1,0,0,2,1], mode = reflect}"}};
}

}  // namespace hetnn::ops
