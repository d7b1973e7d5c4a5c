#include "hetnn/base/integer_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace hetnn {
namespace {

constexpr int32_t kOne = std::numeric_limits<int32_t>::max();  // with 31 bits behind the point
// Integer bits of differences, and of a row's sum, which is held without a sign.
constexpr int kDifferenceBits = 5, kSumBits = 12;
constexpr int64_t kMostSum = std::numeric_limits<uint32_t>::max();

constexpr int64_t kMostEps = int64_t{1} << 61;
constexpr int kRootBits = 62;

int32_t to_i8(int64_t value) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(value, std::numeric_limits<int8_t>::min(), std::numeric_limits<int8_t>::max()));
}

// e^a of a number at most 0 with 26 bits behind the point: the rest behind whole quarters by a series around -1/8, the
// quarters by powers of e.
int32_t exponential(int32_t a) {
  if (a == 0) return kOne;
  constexpr int kQuarterBits = 24;
  // Of e^-(2^k), k from -2 on, and of e^(-1/8) and 1/3, as fractions of 31 bits.
  constexpr int32_t kPowers[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  constexpr int32_t kMiddle = 1895147668, kThird = 715827883;
  const int32_t rest = (a & ((1 << kQuarterBits) - 1)) - (1 << kQuarterBits);
  const int32_t x = rest * (1 << kDifferenceBits) + (1 << 28);
  const int32_t x2 = doubling_high_multiply(x, x), x3 = doubling_high_multiply(x2, x);
  const int32_t cubes = doubling_high_multiply(rounding_shift_right(doubling_high_multiply(x2, x2), 2) + x3, kThird);
  int32_t out = kMiddle + doubling_high_multiply(kMiddle, x + rounding_shift_right(cubes + x2, 1));
  for (int k = 0; k < static_cast<int>(std::size(kPowers)); ++k) {
    if ((rest - a) >> (kQuarterBits + k) & 1) out = doubling_high_multiply(out, kPowers[k]);
  }
  return out;
}

// 1 / (1 + a) of a in [0, 1), both with 31 bits behind the point: three steps of Newton's.
int32_t reciprocal(int32_t a) {
  // 48/17, -32/17 and 1 with 29 bits behind the point.
  constexpr int32_t kFirst = 1515870810, kSlope = -1010580540, kUnit = 1 << 29;
  const auto half = static_cast<int32_t>((int64_t{a} + kOne + 1) / 2);
  int64_t x = kFirst + doubling_high_multiply(half, kSlope);
  for (int step = 0; step < 3; ++step) {
    const int32_t error = kUnit - doubling_high_multiply(half, static_cast<int32_t>(x));
    x += int64_t{4} * doubling_high_multiply(static_cast<int32_t>(x), error);
  }
  return static_cast<int32_t>(std::min<int64_t>(2 * x, kOne));
}

int64_t floor_of_root(int64_t value) {
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(value)));
  while (root * root > value) --root;
  while ((root + 1) * (root + 1) <= value) ++root;
  return root;
}

// value / 2^kShiftBits to nearest, ties to even.
int64_t without_shift_bits(int64_t value) {
  constexpr int64_t kHalf = int64_t{1} << (kShiftBits - 1);
  const int64_t whole = value >> kShiftBits, rest = value - (whole << kShiftBits);
  return whole + (rest > kHalf || (rest == kHalf && whole % 2 != 0) ? 1 : 0);
}

}  // namespace

SoftmaxTable softmax_table(double in_scale, double out_scale) {
  SoftmaxTable out;
  out.factor = requant_of(1 / out_scale, Rounding::single_rounding);
  out.exponentials[0] = kOne;
  constexpr int kBits = 31 - kDifferenceBits;
  const double step = std::ldexp(in_scale, kBits);
  if (!has_requant(step)) return out;  // so large that e^-1 step is 0
  const Requant factor = requant_of(step, Rounding::double_rounding);
  // Beyond it exponentials are 0.
  const double most = std::floor(std::ldexp((1 << kDifferenceBits) - 1, kBits - factor.shift));
  for (int d = 1; d < static_cast<int>(out.exponentials.size()) && d <= most; ++d)
    out.exponentials[static_cast<size_t>(d)] = exponential(requantize(-d, factor, Rounding::double_rounding));
  return out;
}

bool is_sound(const SoftmaxTable& table) {
  return is_sound(table.factor, Rounding::single_rounding) && table.exponentials[0] == kOne &&
         std::ranges::all_of(table.exponentials, [](int32_t e) { return e >= 0; });
}

void softmax_row(const SoftmaxTable& table, int32_t out_zero, std::span<const int32_t> in, std::span<int32_t> out) {
  const int32_t largest = *std::ranges::max_element(in);
  const auto exponential_of = [&](int32_t x) { return table.exponentials[static_cast<size_t>(largest - x)]; };
  int64_t sum = 0;
  for (const int32_t x : in) sum += rounding_shift_right(exponential_of(x), kSumBits);
  const auto held = static_cast<uint32_t>(std::min(sum, kMostSum));
  const int spare = std::countl_zero(held);
  const int32_t inverse = reciprocal(static_cast<int32_t>((int64_t{held} << spare) - (int64_t{1} << 31)));
  const Requant factor{table.factor.multiplier, table.factor.shift - (31 + kSumBits - spare)};
  for (size_t k = 0; k < in.size(); ++k) {
    const int32_t share = doubling_high_multiply(exponential_of(in[k]), inverse);
    out[k] = to_i8(int64_t{requantize(share, factor, Rounding::single_rounding)} + out_zero);
  }
}

std::optional<NormalFactors> normal_factors(std::span<const double> weights, std::span<const double> biases, double eps,
                                            double in_scale, double out_scale) {
  const auto count = static_cast<double>(weights.size());
  if (static_cast<int64_t>(weights.size()) > kMostNormalized) return std::nullopt;
  double most = 0;
  for (const double weight : weights) {
    if (!(std::abs(weight) / out_scale < 0x1p30)) return std::nullopt;
    most = std::max(most, std::abs(weight) / out_scale);
  }
  const double added = std::ldexp(eps * (count / in_scale) * (count / in_scale), 16);
  if (!(added >= 0 && added < static_cast<double>(kMostEps))) return std::nullopt;
  NormalFactors out{.channels = {}, .eps = static_cast<int64_t>(std::nearbyint(added)), .shift = 1};
  // The largest weight has 31 bits.
  int exponent = 0;
  std::frexp(most, &exponent);
  const int bits = std::min(31 - exponent, kMostNormalShift - kNormalBits + kShiftBits);
  out.shift = bits + kNormalBits - kShiftBits;
  for (size_t k = 0; k < weights.size(); ++k) {
    const double weight = std::nearbyint(std::ldexp(weights[k] / out_scale, bits)),
                 bias = std::nearbyint(std::ldexp(biases[k] / out_scale, kShiftBits));
    if (!(std::abs(bias) < 0x1p31)) return std::nullopt;
    out.channels.push_back(
        {static_cast<int32_t>(std::clamp(weight, -0x1p31 + 1, 0x1p31 - 1)), static_cast<int32_t>(bias)});
  }
  return out;
}

bool is_sound_eps(int64_t eps) { return eps >= 0 && eps < kMostEps; }

void normalize_row(std::span<const NormalFactor> channels, int64_t eps, int64_t shift, int32_t out_zero,
                   std::span<const int32_t> in, std::span<int32_t> out) {
  const auto count = static_cast<int64_t>(in.size());
  int64_t sum = 0, squares = 0;
  for (const int64_t x : in) sum += x, squares += x * x;
  // n^2 times the variance, and its root with 8 bits behind the point and as many more as make it 31 in all.
  const int64_t spread = count * squares - sum * sum, square = (spread << 16) + eps;
  const int doublings =
      spread > 0 ? (kRootBits - static_cast<int>(std::bit_width(static_cast<uint64_t>(square)))) / 2 : 0;
  const int64_t inverse = spread > 0 ? (int64_t{1} << 61) / floor_of_root(square << 2 * doublings) : 0;
  const int down = 29 - doublings;
  for (size_t k = 0; k < in.size(); ++k) {
    const int64_t normal = ((count * in[k] - sum) * inverse + (int64_t{1} << (down - 1))) >> down;
    const int64_t product = normal * channels[k].weight;
    const int64_t steps = ((product + (int64_t{1} << (shift - 1))) >> shift) + channels[k].bias;
    out[k] = to_i8(without_shift_bits(steps) + out_zero);
  }
}

}  // namespace hetnn
