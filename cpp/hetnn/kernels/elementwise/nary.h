// Which group (inputs per pass) suits an n-ary layer on this machine.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

/// Used when the parameter `group` is 0.
inline constexpr int kDefaultNaryGroup = 8;

/// Times the layer of `inputs` operands and `elems` elements on one thread with every group from 2 to 16 in turn, for
/// at most about budget_us microseconds in all, and returns the fastest; a later group must win by 1 %. `weighted`:
/// coefficients other than 0, 1 and -1.
int fastest_nary_group(int inputs, int64_t elems, bool weighted, double budget_us = 50000);

}  // namespace hetnn::kernels
