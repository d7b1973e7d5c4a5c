// shift_left: the bits of a moved up by b places; by as many as there are or more, or fewer than 0: 0.
#include "hetnn/ops/elementwise/bitwise.h"

namespace hetnn::ops {

OpDef define_shift_left() {
  return bitwise({.name = "shift_left",
                  .doc = "The bits of a moved up by b places; by as many as there are or more, or fewer than 0: 0.",
                  .torch = {{"aten.bitwise_left_shift.Tensor", "a b"},
                            {"aten.bitwise_left_shift.Tensor_Scalar", "a b"},
                            {"aten.bitwise_left_shift.Scalar_Tensor", "a b"},
                            {"aten.__lshift__.Tensor", "a b"},
                            {"aten.__lshift__.Scalar", "a b"}},
                  .meaning =
                      [](const Evaluation& e) {
                        map_integers<2>(e, [](auto a, auto b) {
                          using T = decltype(a);
                          return within<T>(b) ? static_cast<T>(static_cast<uint64_t>(a) << b) : T(0);
                        });
                      },
                  .samples = {"shift_left(i64[2,3], i64[3])", "shift_left(u8[n], u8[n])"}});
}

}  // namespace hetnn::ops
