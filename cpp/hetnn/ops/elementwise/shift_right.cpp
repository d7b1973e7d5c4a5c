// shift_right: the bits of a moved down by b places, its sign kept; by fewer than 0 as by all.
#include "hetnn/ops/elementwise/bitwise.h"

namespace hetnn::ops {

OpDef define_shift_right() {
  return bitwise(
      {.name = "shift_right",
       .doc = "The bits of a moved down by b places, its sign kept; by fewer than 0 as by all.",
       .torch = {{"aten.bitwise_right_shift.Tensor", "a b"},
                 {"aten.bitwise_right_shift.Tensor_Scalar", "a b"},
                 {"aten.bitwise_right_shift.Scalar_Tensor", "a b"},
                 {"aten.__rshift__.Tensor", "a b"},
                 {"aten.__rshift__.Scalar", "a b"}},
       .meaning =
           [](const Evaluation& e) {
             map_integers<2>(e, [](auto a, auto b) {
               using T = decltype(a);
               return within<T>(b) ? static_cast<T>(a >> b) : static_cast<int64_t>(a) < 0 ? static_cast<T>(-1) : T(0);
             });
           },
       .samples = {"shift_right(i64[2,3], i64[3])", "shift_right(u8[n], u8[n])"}});
}

}  // namespace hetnn::ops
