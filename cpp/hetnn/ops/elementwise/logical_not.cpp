// logical_not: y = x is zero.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_logical_not() {
  return {.name = "logical_not",
          .doc = "Whether x is false or zero.",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.logical_not.default", "x"}},
          .onnx = {"Not"},
          .infer =
              [](const Call& call) {
                return std::vector<Type>{{DType::boolean, call.input(0).shape}};
              },
          .evaluate =
              [](const Evaluation& e) {
                std::byte* data = nullptr;
                Tensor y = Tensor::zeros(DType::boolean, e.input(0).shape(), &data);
                visit_dtype(e.input(0).dtype(), [&](auto zero) {
                  const auto in = e.input(0).values<decltype(zero)>();
                  for (size_t k = 0; k < in.size(); ++k) mutable_values<bool>(data)[k] = in[k] == zero;
                });
                return std::vector<Tensor>{y};
              },
          .constraints = {},
          .kernel = unary_kernel("logical_not"),
          .tolerance = 0,
          .samples = {"logical_not(bool[2,3])"}};
}

}  // namespace hetnn::ops
