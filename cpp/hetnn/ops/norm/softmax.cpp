// softmax: normalised exponentials along an axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<ir::Type> infer(const ir::Node& node) {
  axis_of(node, node.integer("axis"), node.input(0)->rank());
  if (!ir::is_real(node.input(0)->type()))
    ir::fail(node, "softmax_c1",
             text("the input must be real; got ", dtype_name(node.input(0)->dtype()), ". Cast it."));
  return {node.input(0)->type()};
}

std::vector<Tensor> evaluate(const ir::Evaluation& e) {
  const Tensor& x = e.input(0);
  const auto axis = static_cast<size_t>(axis_of(e.node, e.node.integer("axis"), x.rank()));
  int64_t inner = 1;
  for (size_t k = axis + 1; k < x.shape().size(); ++k) inner *= x.shape()[k];
  const int64_t n = x.rank() == 0 ? 1 : x.shape()[axis];
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), x.shape(), &data);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto xv = x.values<T>();
    for (int64_t line = 0; n > 0 && line < x.elems() / n; ++line) {
      const int64_t first = line / inner * n * inner + line % inner;
      auto at = [&](int64_t k) { return static_cast<double>(xv[static_cast<size_t>(first + k * inner)]); };
      double largest = at(0), sum = 0;
      for (int64_t k = 1; k < n; ++k) largest = largest != largest || largest > at(k) ? largest : at(k);
      for (int64_t k = 0; k < n; ++k) sum += std::exp(at(k) - largest);
      for (int64_t k = 0; k < n; ++k)
        mutable_values<T>(data)[first + k * inner] = static_cast<T>(std::exp(at(k) - largest) / sum);
    }
  });
  return {y};
}

}  // namespace

ir::OpDef define_softmax() {
  return {
      .name = "softmax",
      .doc = "y = exp(x) / sum of exp(x) along an axis.",
      .inputs = {{"x", "any shape"}},
      .attrs = {{"axis", ir::AttrKind::integer, Dim(-1), "the axis; negative counts from the back"}},
      .traits = 0,
      .torch = {{"aten.softmax.int", "x axis -"}, {"aten._softmax.default", "x axis -"}},
      .onnx = {"Softmax"},
      .infer = infer,
      .evaluate = evaluate,
      .work = [](const ir::Node& node) { return ir::Work{.macs = 0, .flops = elements(node.output()->shape()) * 12}; },
      .constraints = {},
      .kernel = named_kernel("softmax", {"axis"}),
      .tolerance = 1e-5,
      .samples = {"softmax(f32[2,3,5,7]) {axis = 1}", "softmax(f32[n,9])"}};
}

}  // namespace hetnn::ops
