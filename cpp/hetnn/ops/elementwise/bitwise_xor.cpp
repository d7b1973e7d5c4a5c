// bitwise_xor: bits that one of the two has.
#include "hetnn/ops/elementwise/bitwise.h"

namespace hetnn::ops {

OpDef define_bitwise_xor() {
  return bitwise(
      {.name = "bitwise_xor",
       .doc = "Bits that one of the two has.",
       .torch = {{"aten.bitwise_xor.Tensor", "a b"},
                 {"aten.bitwise_xor.Scalar", "a b"},
                 {"aten.bitwise_xor.Scalar_Tensor", "a b"}},
       .onnx = {{"BitwiseXor", 18, "a b"}},
       .meaning = [](const Evaluation& e) { map_integers<2>(e, [](auto a, auto b) { return a ^ b; }); },
       .samples = {"bitwise_xor(i64[2,3], i64[3])", "bitwise_xor(u8[n], u8[n])", "bitwise_xor(bool[3], bool[3])"}});
}

}  // namespace hetnn::ops
