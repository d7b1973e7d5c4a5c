// gcd: the greatest common divisor of two integers, never negative.
#include <numeric>

#include "hetnn/ops/elementwise/bitwise.h"

namespace hetnn::ops {
namespace {

template <typename T>
uint64_t magnitude(T value) {
  return value < T(0) ? uint64_t{0} - static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
}

}  // namespace

OpDef define_gcd() {
  return bitwise({.name = "gcd",
                  .doc = "The greatest common divisor of a and b, never negative; of 0 and b the size of b.",
                  .torch = {{"aten.gcd.default", "a b"}},
                  .meaning =
                      [](const Evaluation& e) {
                        map_integers<2>(e, [](auto a, auto b) {
                          return static_cast<decltype(a)>(std::gcd(magnitude(a), magnitude(b)));
                        });
                      },
                  .samples = {"gcd(i64[2,3], i64[3])", "gcd(u8[n], u8[n])"}});
}

}  // namespace hetnn::ops
