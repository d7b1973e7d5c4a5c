// bitwise_or: bits that either has.
#include "hetnn/ops/elementwise/bitwise.h"

namespace hetnn::ops {

OpDef define_bitwise_or() {
  return bitwise(
      {.name = "bitwise_or",
       .doc = "Bits that either has.",
       .torch = {{"aten.bitwise_or.Tensor", "a b"},
                 {"aten.bitwise_or.Scalar", "a b"},
                 {"aten.bitwise_or.Scalar_Tensor", "a b"}},
       .onnx = {{"BitwiseOr", 18, "a b"}},
       .meaning = [](const Evaluation& e) { map_integers<2>(e, [](auto a, auto b) { return a | b; }); },
       .samples = {"bitwise_or(i64[2,3], i64[3])", "bitwise_or(u8[n], u8[n])", "bitwise_or(bool[3], bool[3])"}});
}

}  // namespace hetnn::ops
