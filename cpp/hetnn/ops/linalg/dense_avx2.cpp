// The steps in AVX2. Eigen is in a namespace of its own here, so that nothing of it is shared with code for other
// instruction sets; the standard headers that it includes come before the instruction set, so that what they define
// stays of the build's.
#include "hetnn/ops/linalg/dense.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__AVX2__)

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iosfwd>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#pragma GCC push_options
#pragma GCC target("avx2,fma")
// By these Eigen knows it; the compiler sets them for whole files alone.
#define __AVX__ 1
#define __AVX2__ 1
#define __FMA__ 1
#define EIGEN_DONT_PARALLELIZE
#define Eigen EigenAvx2
#define HETNN_DENSE dense_avx2
#include "hetnn/ops/linalg/dense-inl.h"
#undef Eigen
#undef __FMA__
#undef __AVX2__
#undef __AVX__
#pragma GCC pop_options

namespace hetnn::ops {

const DenseSteps* avx2_steps() {
  static constexpr DenseSteps steps{dense_avx2::factor_lu<double>, dense_avx2::solve_triangular<double>,
                                    dense_avx2::bidiagonalize};
  static const bool available = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return available ? &steps : nullptr;
}

}  // namespace hetnn::ops

#else

namespace hetnn::ops {

const DenseSteps* avx2_steps() { return nullptr; }

}  // namespace hetnn::ops

#endif
