// The discrete Fourier transform of one line.
#pragma once

#include <complex>
#include <vector>

namespace hetnn::ops {

/// y[k] = Σ x[n] exp(∓2πi n k / N), with + for the inverse, which is not divided by N. O(N) for every prime factor p of
/// N times p.
std::vector<std::complex<double>> fourier(const std::vector<std::complex<double>>& x, bool inverse);

}  // namespace hetnn::ops
