// bitwise_not: every bit the other way.
#include "hetnn/ops/elementwise/bitwise.h"

namespace hetnn::ops {
OpDef define_bitwise_not() {
  OpDef def = bitwise({.name = "bitwise_not",
                       .doc = "Every bit the other way; of bool: not.",
                       .torch = {{"aten.bitwise_not.default", "x"}},
                       .onnx = {{"BitwiseNot", 18, "x"}},
                       .meaning =
                           [](const Evaluation& e) {
                             map_integers<1>(e, [](auto x) {
                               using V = decltype(x);
                               return static_cast<V>(std::is_same_v<V, bool> ? !x : ~static_cast<uint64_t>(x));
                             });
                           },
                       .samples = {"bitwise_not(i64[2,3])", "bitwise_not(u8[n])", "bitwise_not(bool[3])"}});
  def.inputs = {{"x", "integers or bool, any shape"}};
  return def;
}

}  // namespace hetnn::ops
