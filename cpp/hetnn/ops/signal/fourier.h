// The discrete Fourier transform of one line.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hetnn::ops {

/// y[k] = Σ x[n] exp(∓2πi n k / N), with + for the inverse, which is not divided by N; of floats or doubles, computed
/// in them. O(N) for every prime factor p of N times p.
template <typename Real>
std::vector<std::complex<Real>> fourier(const std::vector<std::complex<Real>>& x, bool inverse);

/// What the results of such a transform of N elements are multiplied by: 1/N where `norm` is the direction's own name,
/// forward or backward, 1/sqrt N where it is ortho, 1 where it is the other's. Empty where it is none of the three.
std::optional<double> fourier_scale(std::string_view norm, bool inverse, int64_t length);

extern template std::vector<std::complex<float>> fourier(const std::vector<std::complex<float>>&, bool);
extern template std::vector<std::complex<double>> fourier(const std::vector<std::complex<double>>&, bool);

}  // namespace hetnn::ops
