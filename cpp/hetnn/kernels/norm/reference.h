// The meaning of the normalizations and of softmax, as plain loops in double; for tests.
#pragma once

#include <cstdint>
#include <vector>

namespace hetnn::kernels::reference {

/// Every run of n elements to mean 0 and variance 1 (rms: to mean square 1), then times weight[n] plus bias[n]; empty:
/// none.
std::vector<double> row_norm(const std::vector<double>& x, int64_t n, const std::vector<double>& weight,
                             const std::vector<double>& bias, double eps, bool rms);

/// x [batch][channels][pixels], normalized over groups of channels, then times weight[channels] plus bias[channels].
std::vector<double> group_norm(const std::vector<double>& x, int64_t batch, int64_t channels, int64_t pixels,
                               int64_t groups, const std::vector<double>& weight, const std::vector<double>& bias,
                               double eps);

/// x [outer][n][inner], softmax or its logarithm over the middle axis.
std::vector<double> softmax(const std::vector<double>& x, int64_t outer, int64_t n, int64_t inner, bool log);

}  // namespace hetnn::kernels::reference
