// Reading and writing stored element types.
#include "hetnn/base/stored.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "hetnn/base/convert.h"
#include "hetnn/base/error.h"
#include "hetnn/base/visit_dtype.h"

namespace hetnn {
namespace {

// A small float: sign, exponent, mantissa. `greatest` are the bits of the greatest finite value, `above` those of what
// is larger, and `nan` those of NaN.
struct Format {
  int mantissa_bits, bias, bits;
  uint8_t greatest, above, nan;
  bool negative_zero;
};

// Width and sign of an integer.
struct Width {
  int bits;
  bool is_signed;
};

// What the bits of a byte say: those of a small float, an integer, or else the exponent of a power of two.
struct Encoding {
  std::optional<Format> format;
  std::optional<Width> width;
};

constexpr Encoding small_float(int mantissa_bits, int bias, int bits, uint8_t greatest, uint8_t above, uint8_t nan,
                               bool negative_zero) {
  return {Format{mantissa_bits, bias, bits, greatest, above, nan, negative_zero}, {}};
}
constexpr Encoding whole(int bits, bool is_signed) { return {{}, Width{bits, is_signed}}; }
constexpr Encoding power_of_two() { return {}; }

// Of all types, those that are computed in without one.
constexpr Encoding kEncodings[] = {
#define HETNN_COMPUTED(...) {},
#define HETNN_STORED(dtype, name, numpy, c, torch, onnx, tflite, encoding) encoding,
#include "hetnn/base/dtypes.inc"
#undef HETNN_COMPUTED
#undef HETNN_STORED
};

const Encoding& encoding_of(DType dtype) {
  if (!is_stored(dtype)) throw InternalError(text(dtype_name(dtype), " is no stored type"));
  return kEncodings[static_cast<size_t>(dtype)];
}

const Format* format_of(DType dtype) {
  if (!is_stored(dtype)) return nullptr;
  const std::optional<Format>& format = encoding_of(dtype).format;
  return format ? &*format : nullptr;
}

bool is_power(DType dtype) { return is_stored(dtype) && !encoding_of(dtype).format && !encoding_of(dtype).width; }

Width width_of(DType dtype) {
  const std::optional<Width>& width = encoding_of(dtype).width;
  if (!width) throw InternalError(text(dtype_name(dtype), " has no integers"));
  return *width;
}

// The finite value of bits without a sign.
double magnitude(const Format& format, int bits) {
  const int exponent = bits >> format.mantissa_bits, mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int unit = std::max(exponent, 1) - format.bias - format.mantissa_bits;
  return std::ldexp((exponent > 0 ? 1 << format.mantissa_bits : 0) + mantissa, unit);
}

float value(const Format& format, uint8_t bits) {
  const int sign = 1 << (format.bits - 1), size = bits & (sign - 1);
  if (size > format.greatest || (!format.negative_zero && bits == sign)) {
    const bool infinite = format.above != format.nan && size == format.above;
    const float out = infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    return bits & sign ? -out : out;
  }
  const auto out = static_cast<float>(magnitude(format, size));
  return bits & sign ? -out : out;
}

uint8_t rounded(const Format& format, double x, bool saturate) {
  const int sign = std::signbit(x) ? 1 << (format.bits - 1) : 0;
  if (std::isnan(x)) return format.negative_zero && format.bits == 8 ? format.nan | sign : format.nan;
  const double size = std::abs(x);
  int low = 0, high = format.greatest + 1;  // magnitude(low) <= size < magnitude(high), or size is above all
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (magnitude(format, middle) <= size ? low : high) = middle;
  }
  // The step above the greatest is as wide as the one below it.
  const double below = magnitude(format, low);
  const double above = high <= format.greatest ? magnitude(format, high) : 2 * below - magnitude(format, low - 1);
  const double down = size - below, up = above - size;
  int bits = down < up || (down == up && low % 2 == 0) ? low : low + 1;
  if (bits > format.greatest) bits = saturate ? format.greatest : format.above;
  if (!format.negative_zero && (bits == 0 || bits == format.nan)) return static_cast<uint8_t>(bits);
  return static_cast<uint8_t>(bits | sign);
}

// A power of two is the exponent of a float.
uint8_t exponent_bits(float x, bool saturate, PowerRounding rounding) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t exponent = bits >> 23 & 0xff, mantissa = bits & 0x7fffff;
  if (exponent == 0xff) return 0xff;
  constexpr uint32_t kHalf = 0x400000;
  const bool up = rounding == PowerRounding::up        ? mantissa != 0
                  : rounding == PowerRounding::nearest ? mantissa > kHalf || (mantissa == kHalf && exponent > 0)
                                                       : false;
  if (up && saturate && exponent == 0xfe) return 0xfe;
  return static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

}  // namespace

int dtype_bits(DType dtype) {
  if (!is_stored(dtype)) return static_cast<int>(8 * dtype_bytes(dtype));
  const auto& [format, width] = encoding_of(dtype);
  return format ? format->bits : width ? width->bits : 8;
}

bool is_stored_float(DType dtype) { return is_stored(dtype) && !encoding_of(dtype).width; }

float stored_value(DType dtype, uint8_t bits) {
  if (const Format* format = format_of(dtype)) return value(*format, bits);
  if (is_power(dtype)) {
    return bits == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, int{bits} - 127);
  }
  const Width width = width_of(dtype);
  const int low = bits & ((1 << width.bits) - 1);
  return static_cast<float>(width.is_signed && low >> (width.bits - 1) ? low - (1 << width.bits) : low);
}

uint8_t stored_bits(DType dtype, double x, bool saturate, PowerRounding rounding) {
  if (const Format* format = format_of(dtype)) return rounded(*format, x, saturate);
  if (is_power(dtype)) return exponent_bits(static_cast<float>(x), saturate, rounding);
  return stored_bits(dtype, convert<int64_t>(x));
}

std::pair<int64_t, int64_t> integer_range(DType dtype) {
  if (is_stored(dtype)) {
    const auto [bits, is_signed] = width_of(dtype);
    const int64_t count = int64_t{1} << bits, least = is_signed ? -count / 2 : 0;
    return {least, least + count - 1};
  }
  return visit_dtype(dtype, [&]<typename T>(T) -> std::pair<int64_t, int64_t> {
    if constexpr (std::is_integral_v<T>) {
      constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<T>::max());
      return {static_cast<int64_t>(std::numeric_limits<T>::min()),
              static_cast<int64_t>(std::min<uint64_t>(kMost, std::numeric_limits<int64_t>::max()))};
    } else {
      throw InternalError(text(dtype_name(dtype), " has no integers"));
    }
  });
}

uint8_t stored_bits(DType dtype, int64_t x) { return static_cast<uint8_t>(x & ((1 << width_of(dtype).bits) - 1)); }

void read_numbers(DType dtype, const std::byte* from, int64_t count, double* to) {
  if (!is_stored(dtype)) return ConvertElements(dtype, DType::f64)(from, reinterpret_cast<std::byte*>(to), count);
  for (int64_t k = 0; k < count; ++k) to[k] = double{stored_value(dtype, static_cast<uint8_t>(from[k]))};
}

void write_integers(DType dtype, const int64_t* from, int64_t count, std::byte* to) {
  if (!is_stored(dtype)) return ConvertElements(DType::i64, dtype)(reinterpret_cast<const std::byte*>(from), to, count);
  for (int64_t k = 0; k < count; ++k) to[k] = static_cast<std::byte>(stored_bits(dtype, from[k]));
}

}  // namespace hetnn
