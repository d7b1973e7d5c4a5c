// bitwise_and: bits that both have.
#include "hetnn/ops/elementwise/bitwise.h"

namespace hetnn::ops {

OpDef define_bitwise_and() {
  return bitwise(
      {.name = "bitwise_and",
       .doc = "Bits that both have.",
       .torch = {{"aten.bitwise_and.Tensor", "a b"},
                 {"aten.bitwise_and.Scalar", "a b"},
                 {"aten.bitwise_and.Scalar_Tensor", "a b"}},
       .onnx = {{"BitwiseAnd", 18, "a b"}},
       .meaning = [](const Evaluation& e) { map_integers<2>(e, [](auto a, auto b) { return a & b; }); },
       .samples = {"bitwise_and(i64[2,3], i64[3])", "bitwise_and(u8[n], u8[n])", "bitwise_and(bool[3], bool[3])"}});
}

}  // namespace hetnn::ops
