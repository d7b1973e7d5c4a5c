// How near elementary functions of f32 come to the C library's in double: one unit in the last place, over all floats.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "../kernel_runner.h"

namespace hetnn::kernels::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

using Unary = double (*)(double);
using Binary = double (*)(double, double);

// Of every exponent, and near 0, 1 and whole multiples of a quarter, where functions have their ends and zeros.
std::vector<double> floats(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> near(-4, 4);
  std::vector<double> out = {0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 10, 1000, kInf, -kInf, std::nan(""), 0.25, 3.5, 1e-20};
  while (static_cast<int>(out.size()) < count) {
    const auto any = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(any) && std::abs(any) >= std::numeric_limits<float>::min()) out.push_back(any);
    out.push_back(static_cast<float>(near(random)));
    out.push_back(static_cast<float>(1 + near(random) * 1e-4));
    out.push_back(static_cast<float>(std::round(near(random) * 4) / 4));
  }
  return out;
}

// Results below the least normal number may be 0.
void expect_nearest(double found, double exact, const std::string& what) {
  const auto want = static_cast<float>(exact);
  if (std::isnan(want) || std::isinf(want)) {
    const bool overflows = std::isinf(want) && std::abs(exact) < kInf;
    ASSERT_TRUE(std::isnan(want) ? std::isnan(found) : found == want || (overflows && std::abs(found) > 3.4e38))
        << what << " is " << found << ", expected " << want;
    return;
  }
  const double unit = std::max(std::abs(std::nextafter(want, 2 * want) - want), std::numeric_limits<float>::min());
  ASSERT_LE(std::abs(found - exact), 1.01 * unit) << what << " is " << found << ", expected " << want;
  if (exact == 0) {
    ASSERT_EQ(std::signbit(found), std::signbit(exact)) << what;
  }
}

TEST(Accuracy, OfFunctionsOfOneNumber) {
  const std::pair<const char*, Unary> functions[] = {
      {"log", std::log},     {"log2", std::log2}, {"log10", std::log10}, {"log1p", std::log1p}, {"exp2", std::exp2},
      {"sin", std::sin},     {"cos", std::cos},   {"tan", std::tan},     {"asin", std::asin},   {"acos", std::acos},
      {"atan", std::atan},   {"sinh", std::sinh}, {"cosh", std::cosh},   {"asinh", std::asinh}, {"acosh", std::acosh},
      {"atanh", std::atanh}, {"erfc", std::erfc}};
  const std::vector<double> x = floats(1, 20000);
  const std::vector<int64_t> shape = {static_cast<int64_t>(x.size())};
  for (const std::string& isa : available_isas()) {
    restrict_isa(isa);
    for (const auto& [name, function] : functions) {
      const auto y = run_kernel("unary", {plain(shape, x)}, {TensorView::plain(DType::f32, shape)}, {{"op", name}})[0];
      for (size_t k = 0; k < x.size(); ++k) {
        expect_nearest(y[k], function(x[k]), std::string(name) + "(" + std::to_string(x[k]) + ") on " + isa);
        if (HasFatalFailure()) return restrict_isa("");
      }
    }
  }
  restrict_isa("");
}

double divided(double x, double y) {
  const double left = std::fmod(x, y);
  return left != 0 && (y < 0) != (left < 0) ? static_cast<double>(static_cast<float>(left) + static_cast<float>(y))
                                            : left;
}

TEST(Accuracy, OfFunctionsOfTwoNumbers) {
  const std::pair<const char*, Binary> functions[] = {
      {"pow", std::pow}, {"atan2", std::atan2}, {"fmod", std::fmod}, {"remainder", divided}};
  const std::vector<double> x = floats(2, 30000), y = [&] {
    std::vector<double> out = floats(3, 30000);
    std::shuffle(out.begin(), out.end(), std::mt19937(4));
    return out;
  }();
  const auto count = static_cast<int64_t>(std::min(x.size(), y.size()));
  const std::vector<int64_t> shape = {count};
  const std::vector<double> left(x.begin(), x.begin() + count), right(y.begin(), y.begin() + count);
  for (const std::string& isa : available_isas()) {
    restrict_isa(isa);
    for (const auto& [name, function] : functions) {
      const auto found = run_kernel("binary", {plain(shape, left), plain(shape, right)},
                                    {TensorView::plain(DType::f32, shape)}, {{"op", name}})[0];
      for (size_t k = 0; k < left.size(); ++k) {
        expect_nearest(
            found[k], function(left[k], right[k]),
            std::string(name) + "(" + std::to_string(left[k]) + ", " + std::to_string(right[k]) + ") on " + isa);
        if (HasFatalFailure()) return restrict_isa("");
      }
    }
  }
  restrict_isa("");
}

}  // namespace
}  // namespace hetnn::kernels::testing
