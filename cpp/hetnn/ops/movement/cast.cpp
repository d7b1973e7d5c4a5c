// cast: the same values in another element type.
#include "hetnn/base/convert.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  visit_dtype(x.dtype, [&](auto from) {
    visit_dtype(y.dtype, [&](auto to) {
      using To = decltype(to);
      const auto in = x.values<decltype(from)>();
      To* out = y.values<To>();
      for (size_t k = 0; k < in.size(); ++k) out[k] = convert<To>(in[k]);
    });
  });
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
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"cast(f32[2,3]) {to = i64}", "cast(bool[n]) {to = f32}", "cast(i32[4]) {to = bool}",
                      "cast(f32[2,3,4,5]) {to = f16}", "cast(f32[3,5]) {to = bf16}"}};
}

}  // namespace hetnn::ops
