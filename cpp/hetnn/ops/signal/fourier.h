// The discrete Fourier transform of one line.
#pragma once

#include <complex>
#include <vector>

namespace hetnn::ops {

/// y[k] = Σ x[n] exp(∓2πi n k / N), with + for the inverse, which is not divided by N; of floats or doubles, computed
/// in them. O(N) for every prime factor p of N times p.
template <typename Real>
std::vector<std::complex<Real>> fourier(const std::vector<std::complex<Real>>& x, bool inverse);

extern template std::vector<std::complex<float>> fourier(const std::vector<std::complex<float>>&, bool);
extern template std::vector<std::complex<double>> fourier(const std::vector<std::complex<double>>&, bool);

}  // namespace hetnn::ops
