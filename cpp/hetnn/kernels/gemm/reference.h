// The meaning of the matrix products, as plain loops in double; for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hetnn::kernels::reference {

/// y[m][n] = bias[n] + sum over k of a[m][k] * b[n][k]; an empty bias counts as zeros.
std::vector<double> linear(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& bias,
                           int64_t m, int64_t n, int64_t k);

}  // namespace hetnn::kernels::reference
