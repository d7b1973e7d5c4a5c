// The engines' arithmetic. f32 and f16 compute in f32, sums in the declared order, f16 rounded once when stored. i8
// computes in i32: operands less their zero points, exact sums, then the fixed-point factor, zero point and bounds.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "hetnn/base/error.h"
#include "hetnn/base/integer_rows.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/base/steps.h"
#include "hetnn/npu/access.h"
#include "hetnn/sim/machine.h"

namespace hetnn::sim {

using namespace hetnn::npu;  // NOLINT(google-build-using-namespace): the instructions' own names

namespace {

DType dtype_of(int64_t field) { return static_cast<DType>(field); }
bool is_quantized(int64_t field) { return dtype_of(field) == DType::i8; }
template <typename T>
inline constexpr bool kInteger = std::is_same_v<T, int32_t>;
template <typename T>
constexpr int64_t sum_dtype() {
  return static_cast<int64_t>(kInteger<T> ? DType::i32 : DType::f32);
}

// What a result passes through on its way out, in the words of its instruction.
template <typename T>
struct Exit {
  int64_t act;
  T low, high, zero;

  T operator()(T value) const {
    if (act == static_cast<int64_t>(Act::relu)) {
      // NaN stays NaN and -0 stays -0, as in the formula of relu.
      return value < zero ? zero : value;
    }
    if (act == static_cast<int64_t>(Act::clamp)) return value < low ? low : value > high ? high : value;
    return value;
  }
};

template <typename T>
Exit<T> exit_of(int64_t act, int64_t low, int64_t high, int64_t zero) {
  if constexpr (kInteger<T>) {
    return {act, static_cast<int8_t>(low), static_cast<int8_t>(high), static_cast<int32_t>(zero)};
  } else {
    return {act, float_of_bits(low), float_of_bits(high), 0};
  }
}

// Where a row of a feature map begins, which may lie in a ring.
int64_t row_addr(int64_t row, int64_t addr, int64_t pitch, int64_t wrap_row, int64_t wrap_addr) {
  return wrap_row > 0 && row >= wrap_row ? wrap_addr + (row - wrap_row) * pitch : addr + row * pitch;
}

int32_t to_i8(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, -128, 127)); }

// Of quantized integers and of floats: NaN wins, as in the operators.
template <typename T>
T larger(T a, T b) {
  return a != a || a > b ? a : b;
}
template <typename T>
T smaller(T a, T b) {
  return a != a || a < b ? a : b;
}

// Of the sum of `count` steps from the zero point: halves to even, or away from zero of the integers as they are.
int64_t mean_of(int64_t steps, int64_t count, int64_t zero, Rounding rounding) {
  if (rounding == Rounding::half_even_fp32) {
    const int64_t whole = steps >= 0 ? steps / count : -((count - 1 - steps) / count);
    const int64_t rest = 2 * (steps - whole * count);
    return whole + (rest > count || (rest == count && whole % 2 != 0) ? 1 : 0) + zero;
  }
  const int64_t sum = steps + zero * count, half = count / 2;
  return (sum + (sum > 0 ? half : -half)) / count;
}

template <typename T>
T combined(ElementwiseOp op, T a, T b) {
  switch (op) {
    case ElementwiseOp::add:
      return a + b;
    case ElementwiseOp::sub:
      return a - b;
    case ElementwiseOp::mul:
      return a * b;
    case ElementwiseOp::max:
      return larger(a, b);
    case ElementwiseOp::min:
      return smaller(a, b);
  }
  return a;
}

// Of steps from the zero points, by factors as the rounding has them: scales in f32, or factors to a scale in common.
int32_t combined_steps(ElementwiseOp op, int32_t a, int32_t b, std::span<const Requant> factors, Rounding rounding,
                       int64_t zero) {
  if (rounding == Rounding::half_even_fp32) {
    const auto scale = [&](size_t k) { return std::bit_cast<float>(factors[k].multiplier); };
    const float real = combined(op, scale(0) * static_cast<float>(a), scale(1) * static_cast<float>(b));
    return integer_of<int8_t>(real, scale(2), zero);
  }
  if (op != ElementwiseOp::mul) {
    a = requantize(a * (1 << kElementwiseBits), factors[0], rounding);
    b = requantize(b * (1 << kElementwiseBits), factors[1], rounding);
  }
  return to_i8(int64_t{requantize(combined(op, a, b), factors[2], rounding)} + zero);
}

}  // namespace

template <typename T>
void Machine::read(int64_t addr, int64_t dtype, int64_t count, T* to, int32_t zero) {
  if (count == 0) return;
  const auto n = static_cast<size_t>(count);
  const std::byte* from = written(addr, count * dtype_bytes(dtype_of(dtype)));
  if constexpr (kInteger<T>) {
    if (dtype_of(dtype) == DType::i32) {
      std::memcpy(to, from, n * sizeof(int32_t));
    } else {
      const auto* bytes = reinterpret_cast<const int8_t*>(from);
      for (size_t k = 0; k < n; ++k) to[k] = int{bytes[k]};
    }
    for (size_t k = 0; zero != 0 && k < n; ++k) to[k] -= zero;
  } else if (dtype_of(dtype) == DType::f32) {
    std::memcpy(to, from, n * sizeof(float));
  } else {
    for (size_t k = 0; k < n; ++k) {
      uint16_t bits = 0;
      std::memcpy(&bits, from + k * sizeof bits, sizeof bits);
      to[k] = f16_to_f32(bits);
    }
  }
}

template <typename T>
std::vector<T> Machine::read_rows(int64_t addr, int64_t dtype, int64_t rows, int64_t pitch, int64_t channels,
                                  int32_t zero) {
  std::vector<T> out(static_cast<size_t>(rows * channels));
  for (int64_t r = 0; r < rows; ++r) read<T>(addr + r * pitch, dtype, channels, out.data() + r * channels, zero);
  return out;
}

template <typename T>
void Machine::write(int64_t addr, int64_t dtype, int64_t count, const T* from) {
  if (count == 0) return;
  const auto n = static_cast<size_t>(count);
  const int64_t bytes = count * dtype_bytes(dtype_of(dtype));
  std::byte* to = sram(addr, bytes);
  mark(addr, bytes);
  if (dtype_of(dtype) == DType::f32 || dtype_of(dtype) == DType::i32) {
    std::memcpy(to, from, n * sizeof(T));
    return;
  }
  for (size_t k = 0; k < n; ++k) {
    if constexpr (kInteger<T>) {
      to[k] = static_cast<std::byte>(to_i8(from[k]));
    } else {
      const uint16_t bits = f32_to_f16(from[k]);
      std::memcpy(to + k * sizeof bits, &bits, sizeof bits);
    }
  }
}

std::vector<Requant> Machine::read_pair_factors(int64_t addr, int64_t rounding) {
  std::vector<Requant> out = read_factors(addr, 3, rounding);
  if (static_cast<Rounding>(rounding) == Rounding::half_even_fp32 &&
      !std::ranges::all_of(out, [](const Requant& each) { return std::bit_cast<float>(each.multiplier) > 0; }))
    fail("reads a scale that is not positive");
  return out;
}

std::vector<Requant> Machine::read_factors(int64_t addr, int64_t count, int64_t rounding) {
  std::vector<Requant> out(static_cast<size_t>(count));
  if (count == 0) return out;
  std::memcpy(out.data(), written(addr, count * static_cast<int64_t>(sizeof(Requant))), out.size() * sizeof(Requant));
  for (const Requant& factor : out) {
    if (!is_sound(factor, static_cast<Rounding>(rounding)))
      fail(text("reads the factor ", factor.multiplier, " * 2^", factor.shift, ", which is none"));
  }
  return out;
}

template <typename T>
void Machine::convolve(const Conv2d& i) {
  const int64_t filters = i.groups * i.out_c, channels = i.groups * i.in_c;
  std::vector<T> in(static_cast<size_t>(i.in_h * i.in_w * channels));
  for (int64_t y = 0; y < i.in_h; ++y) {
    const int64_t row = row_addr(y, i.in_addr, i.in_row_pitch, i.in_wrap_row, i.in_wrap_addr);
    for (int64_t x = 0; x < i.in_w; ++x) {
      read<T>(row + x * i.in_pixel_pitch, i.dtype, channels, in.data() + (y * i.in_w + x) * channels,
              static_cast<int32_t>(i.in_zero));
    }
  }
  std::vector<T> weights(static_cast<size_t>(i.kernel_h * i.kernel_w * i.in_c * filters));
  read<T>(i.weight_addr, i.dtype, static_cast<int64_t>(weights.size()), weights.data());
  std::vector<T> bias(static_cast<size_t>(filters));
  if (i.has_bias) read<T>(i.bias_addr, sum_dtype<T>(), filters, bias.data());
  std::vector<Requant> factors;
  std::vector<Requant> add_factors;
  if (kInteger<T> && !i.store_acc) factors = read_factors(i.quant_addr, filters, i.rounding);
  if (kInteger<T> && !i.store_acc && i.has_addend) add_factors = read_pair_factors(i.add_quant_addr, i.rounding);
  const Exit<T> leave = exit_of<T>(i.act, i.clamp_lo, i.clamp_hi, i.out_zero);
  std::vector<T> sums(static_cast<size_t>(filters)), addend(static_cast<size_t>(filters));
  for (int64_t oy = 0; oy < i.out_h; ++oy) {
    const int64_t out_row = row_addr(oy, i.out_addr, i.out_row_pitch, i.out_wrap_row, i.out_wrap_addr),
                  add_row = row_addr(oy, i.add_addr, i.add_row_pitch, i.add_wrap_row, i.add_wrap_addr);
    for (int64_t ox = 0; ox < i.out_w; ++ox) {
      const int64_t acc = i.acc_addr + (oy * i.out_w + ox) * filters * static_cast<int64_t>(sizeof(T));
      std::fill(sums.begin(), sums.end(), T(0));
      if (i.load_acc) read<T>(acc, sum_dtype<T>(), filters, sums.data());
      for (int64_t ky = 0; ky < i.kernel_h; ++ky) {
        const int64_t y = oy * i.stride_h + ky * i.dilation_h - i.pad_top;
        if (y < 0 || y >= i.in_h) continue;
        for (int64_t kx = 0; kx < i.kernel_w; ++kx) {
          const int64_t x = ox * i.stride_w + kx * i.dilation_w - i.pad_left;
          if (x < 0 || x >= i.in_w) continue;
          const T* from = in.data() + (y * i.in_w + x) * channels;
          const T* w = weights.data() + (ky * i.kernel_w + kx) * i.in_c * filters;
          if (i.in_c == 1 && i.out_c == 1) {
            for (int64_t c = 0; c < i.groups; ++c) sums[static_cast<size_t>(c)] += from[c] * w[c];
            continue;
          }
          for (int64_t c = 0; c < i.in_c; ++c) {
            for (int64_t g = 0; g < i.groups; ++g) {
              const T value = from[g * i.in_c + c];
              const T* line = w + c * filters + g * i.out_c;
              T* to = sums.data() + g * i.out_c;
              for (int64_t f = 0; f < i.out_c; ++f) to[f] += value * line[f];
            }
          }
        }
      }
      if (i.store_acc) {
        write<T>(acc, sum_dtype<T>(), filters, sums.data());
        continue;
      }
      if (i.has_addend)
        read<T>(add_row + ox * i.add_pixel_pitch, i.dtype, filters, addend.data(), static_cast<int32_t>(i.add_zero));
      for (size_t f = 0; f < sums.size(); ++f) {
        T value = sums[f] + bias[f];
        if constexpr (kInteger<T>) {
          const int64_t zero = i.has_addend ? i.sum_zero : i.out_zero;
          value = to_i8(int64_t{requantize(value, factors[f], static_cast<Rounding>(i.rounding))} + zero);
          if (i.has_addend) {
            value = combined_steps(ElementwiseOp::add, static_cast<int32_t>(value - zero), addend[f], add_factors,
                                   static_cast<Rounding>(i.rounding), i.out_zero);
          }
        } else if (i.has_addend) {
          value += addend[f];
        }
        sums[f] = leave(value);
      }
      write<T>(out_row + ox * i.out_pixel_pitch, i.dtype, filters, sums.data());
    }
  }
}

template <typename T>
void Machine::multiply(const Matmul& i) {
  const std::vector<T> a = read_rows<T>(i.a_addr, i.dtype, i.m, i.a_pitch, i.k, static_cast<int32_t>(i.a_zero));
  const std::vector<T> b = read_rows<T>(i.b_addr, i.dtype, i.transpose_b ? i.n : i.k, i.b_pitch,
                                        i.transpose_b ? i.k : i.n, static_cast<int32_t>(i.b_zero));
  std::vector<Requant> factors;
  if (kInteger<T>) factors = read_factors(i.quant_addr, i.n, i.rounding);
  const Exit<T> leave = exit_of<T>(i.act, i.clamp_lo, i.clamp_hi, i.out_zero);
  const int64_t over_k = i.transpose_b ? 1 : i.n, over_n = i.transpose_b ? i.k : 1;
  std::vector<T> row(static_cast<size_t>(i.n)), addend(row.size());
  for (int64_t m = 0; m < i.m; ++m) {
    std::fill(row.begin(), row.end(), T(0));
    for (int64_t k = 0; k < i.k; ++k) {
      const T value = a[static_cast<size_t>(m * i.k + k)];
      const T* line = b.data() + k * over_k;
      for (int64_t n = 0; n < i.n; ++n) row[static_cast<size_t>(n)] += value * line[n * over_n];
    }
    if (i.has_addend) read<T>(i.add_addr + m * i.add_pitch, i.dtype, i.n, addend.data());
    for (size_t n = 0; n < row.size(); ++n) {
      T value = row[n];
      if constexpr (kInteger<T>) {
        value = to_i8(int64_t{requantize(value, factors[n], static_cast<Rounding>(i.rounding))} + i.out_zero);
      } else if (i.has_addend) {
        value += addend[n];
      }
      row[n] = leave(value);
    }
    write<T>(i.out_addr + m * i.out_pitch, i.dtype, i.n, row.data());
  }
}

template <typename T>
void Machine::combine(const Elementwise& i) {
  const auto op = static_cast<ElementwiseOp>(i.op);
  std::vector<T> a(static_cast<size_t>(i.channels)), b(a.size());
  std::vector<Requant> factors;
  if (kInteger<T>) factors = read_pair_factors(i.quant_addr, i.rounding);
  const Exit<T> leave = exit_of<T>(i.act, i.clamp_lo, i.clamp_hi, i.out_zero);
  for (int64_t r = 0; r < i.rows; ++r) {
    read<T>(i.a_addr + r * i.a_pitch, i.dtype, i.channels, a.data(), static_cast<int32_t>(i.a_zero));
    if (r == 0 || !i.b_kind)
      read<T>(i.b_addr + r * i.b_pitch, i.dtype, i.channels, b.data(), static_cast<int32_t>(i.b_zero));
    for (size_t c = 0; c < a.size(); ++c) {
      T value = 0;
      if constexpr (kInteger<T>)
        value = combined_steps(op, a[c], b[c], factors, static_cast<Rounding>(i.rounding), i.out_zero);
      else
        value = combined(op, float_of_bits(i.scale_a) * a[c], float_of_bits(i.scale_b) * b[c]);
      a[c] = leave(value);
    }
    write<T>(i.out_addr + r * i.out_pitch, i.dtype, i.channels, a.data());
  }
}

template <typename T>
void Machine::pool(const Pool& i) {
  const bool largest = i.op == static_cast<int64_t>(PoolOp::max);
  const auto zero = static_cast<T>(largest ? 0 : i.zero);  // of integers, means are taken of steps from the zero point
  T lowest = std::numeric_limits<T>::lowest();
  if constexpr (!kInteger<T>) lowest = -std::numeric_limits<T>::infinity();
  std::vector<T> in(static_cast<size_t>(i.in_h * i.in_w * i.channels));
  for (int64_t y = 0; y < i.in_h; ++y) {
    const int64_t row = row_addr(y, i.in_addr, i.in_row_pitch, i.in_wrap_row, i.in_wrap_addr);
    for (int64_t x = 0; x < i.in_w; ++x) {
      read<T>(row + x * i.in_pixel_pitch, i.dtype, i.channels, in.data() + (y * i.in_w + x) * i.channels,
              static_cast<int32_t>(zero));
    }
  }
  std::vector<T> out(static_cast<size_t>(i.channels));
  for (int64_t oy = 0; oy < i.out_h; ++oy) {
    const int64_t out_row = row_addr(oy, i.out_addr, i.out_row_pitch, i.out_wrap_row, i.out_wrap_addr);
    for (int64_t ox = 0; ox < i.out_w; ++ox) {
      std::fill(out.begin(), out.end(), largest ? lowest : T(0));
      int64_t inside = 0, padded = 0;
      for (int64_t ky = 0; ky < i.kernel_h; ++ky) {
        for (int64_t kx = 0; kx < i.kernel_w; ++kx) {
          const int64_t y = oy * i.stride_h + ky * i.dilation_h - i.pad_top,
                        x = ox * i.stride_w + kx * i.dilation_w - i.pad_left;
          padded += y < i.in_h + i.pad_bottom && x < i.in_w + i.pad_right;
          if (y < 0 || y >= i.in_h || x < 0 || x >= i.in_w) continue;
          ++inside;
          const T* from = in.data() + (y * i.in_w + x) * i.channels;
          for (size_t c = 0; c < out.size(); ++c) out[c] = largest ? larger(from[c], out[c]) : out[c] + from[c];
        }
      }
      const int64_t divisor = i.divisor > 0 ? i.divisor : i.count_pad ? padded : inside;
      for (size_t c = 0; !largest && c < out.size(); ++c) {
        if constexpr (kInteger<T>) {
          out[c] = divisor == 0 ? zero : to_i8(mean_of(out[c], divisor, zero, static_cast<Rounding>(i.rounding)));
        } else {
          out[c] /= static_cast<T>(divisor);
        }
      }
      write<T>(out_row + ox * i.out_pixel_pitch, i.dtype, i.channels, out.data());
    }
  }
}

template <typename T>
void Machine::activate(const Activation& i) {
  const Exit<T> leave = exit_of<T>(i.act, i.clamp_lo, i.clamp_hi, i.zero);
  const bool table = i.act == static_cast<int64_t>(Act::table);
  std::vector<T> values(static_cast<size_t>(i.channels)), entries;
  if (table) {
    entries = read_rows<T>(i.table_addr, i.dtype, 1, 0, 256);
  }
  for (int64_t r = 0; r < i.rows; ++r) {
    read<T>(i.in_addr + r * i.in_pitch, i.dtype, i.channels, values.data());
    for (T& value : values) value = table ? entries[static_cast<size_t>(value) + 128] : leave(value);
    write<T>(i.out_addr + r * i.out_pitch, i.dtype, i.channels, values.data());
  }
}

void Machine::execute(const Conv2d& i) { return is_quantized(i.dtype) ? convolve<int32_t>(i) : convolve<float>(i); }
void Machine::execute(const Matmul& i) { return is_quantized(i.dtype) ? multiply<int32_t>(i) : multiply<float>(i); }
void Machine::execute(const Elementwise& i) { return is_quantized(i.dtype) ? combine<int32_t>(i) : combine<float>(i); }
void Machine::execute(const Pool& i) { return is_quantized(i.dtype) ? pool<int32_t>(i) : pool<float>(i); }
void Machine::execute(const Activation& i) { return is_quantized(i.dtype) ? activate<int32_t>(i) : activate<float>(i); }

void Machine::execute(const Softmax& i) {
  SoftmaxTable table;
  std::memcpy(&table, written(i.table_addr, sizeof table), sizeof table);
  if (!is_sound(table)) fail("reads a table of exponentials that is none");
  std::vector<int32_t> row(static_cast<size_t>(i.channels));
  for (int64_t r = 0; r < i.rows; ++r) {
    read<int32_t>(i.in_addr + r * i.in_pitch, i.dtype, i.channels, row.data());
    softmax_row(table, static_cast<int32_t>(i.out_zero), row, row);
    write<int32_t>(i.out_addr + r * i.out_pitch, i.dtype, i.channels, row.data());
  }
}

void Machine::execute(const Normalize& i) {
  std::vector<NormalFactor> factors(static_cast<size_t>(i.channels));
  const auto bytes = static_cast<int64_t>(factors.size() * sizeof(NormalFactor));
  std::memcpy(factors.data(), written(i.factors_addr, bytes), static_cast<size_t>(bytes));
  int64_t eps = 0;
  std::memcpy(&eps, written(i.factors_addr + bytes, kNormalEpsBytes), sizeof eps);
  if (!is_sound_eps(eps)) fail(text("adds ", eps, " to its squares, which is none"));
  std::vector<int32_t> row(factors.size());
  for (int64_t r = 0; r < i.rows; ++r) {
    read<int32_t>(i.in_addr + r * i.in_pitch, i.dtype, i.channels, row.data());
    normalize_row(factors, eps, i.shift, static_cast<int32_t>(i.out_zero), row, row);
    write<int32_t>(i.out_addr + r * i.out_pitch, i.dtype, i.channels, row.data());
  }
}

void Machine::execute(const Reduce& i) {
  const std::vector<float> in = read_rows<float>(i.in_addr, i.dtype, i.rows, i.in_pitch, i.channels);
  const bool largest = i.op != 0;
  std::vector<float> out(static_cast<size_t>(i.over_channels ? i.rows : i.channels),
                         largest ? -std::numeric_limits<float>::infinity() : 0.0F);
  for (int64_t r = 0; r < i.rows; ++r) {
    for (int64_t c = 0; c < i.channels; ++c) {
      const float value = in[static_cast<size_t>(r * i.channels + c)];
      float& to = out[static_cast<size_t>(i.over_channels ? r : c)];
      to = largest ? larger(value, to) : to + value;
    }
  }
  const float scale = float_of_bits(i.scale);
  for (float& value : out) value = largest ? value : value * scale;
  write<float>(i.out_addr, i.dtype, static_cast<int64_t>(out.size()), out.data());
}

}  // namespace hetnn::sim
