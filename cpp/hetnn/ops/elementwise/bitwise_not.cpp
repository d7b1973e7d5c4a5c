// bitwise_not: every bit the other way.
#include "hetnn/ops/elementwise/bitwise.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  visit_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      const auto from = x.values<T>();
      T* to = y.values<T>();
      for (size_t k = 0; k < from.size(); ++k) {
        if constexpr (std::is_same_v<T, bool>) {
          to[k] = !from[k];
        } else {
          to[k] = static_cast<T>(~from[k]);
        }
      }
    }
  });
}

}  // namespace

OpDef define_bitwise_not() {
  OpDef def = bitwise({.name = "bitwise_not",
                       .doc = "Every bit the other way; of bool: not.",
                       .torch = {{"aten.bitwise_not.default", "x"}},
                       .onnx = {{"BitwiseNot", 18, "x"}},
                       .meaning = meaning,
                       .samples = {"bitwise_not(i64[2,3])", "bitwise_not(u8[n])", "bitwise_not(bool[3])"}});
  def.inputs = {{"x", "integers or bool, any shape"}};
  return def;
}

}  // namespace hetnn::ops
