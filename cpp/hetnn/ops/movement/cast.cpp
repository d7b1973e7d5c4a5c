// cast: the same values in another element type.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/base/narrow_float.h"
#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor& x = e.input(0);
  const DType wanted = e.call.dtype("to");
  std::byte* data = nullptr;
  Tensor y =
      Tensor::zeros(is_narrow_float(wanted) ? DType::f32 : wanted, x.shape(), &data);  // rounded by whoever asked
  visit_dtype(x.dtype(), [&](auto from) {
    visit_dtype(y.dtype(), [&](auto to) {
      using T = decltype(to);
      const auto in = x.values<decltype(from)>();
      for (size_t k = 0; k < in.size(); ++k) {
        if constexpr (std::is_same_v<T, bool>) {
          mutable_values<T>(data)[k] = in[k] != decltype(from)(0);
        } else {
          mutable_values<T>(data)[k] = static_cast<T>(in[k]);  // NOLINT(bugprone-signed-char-misuse): i8 is a number
        }
      }
    });
  });
  return {y};
}

}  // namespace

OpDef define_cast() {
  return {.name = "cast",
          .doc = "The same values in another element type: reals are cut towards zero, everything but 0 is true.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"to", AttrKind::dtype, std::nullopt, "the element type of y"}},
          .traits = Trait::elementwise | Trait::conversion,
          .torch = {},
          .onnx = {"Cast"},
          .infer =
              [](const Call& call) {
                return std::vector<Type>{{call.dtype("to"), call.input(0).shape}};
              },
          .evaluate = evaluate,
          .constraints = {},
          .kernel = named_kernel("cast", {}),
          .tolerance = 0,
          .samples = {"cast(f32[2,3]) {to = i64}", "cast(bool[n]) {to = f32}", "cast(i32[4]) {to = bool}",
                      "cast(f32[2,3,4,5]) {to = f16}", "cast(f32[3,5]) {to = bf16}"}};
}

}  // namespace hetnn::ops
