// Element types of eight bits or fewer that values are kept in and nothing is computed in: small floats and integers,
// each in the low bits of a byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "hetnn/base/dtype.h"

namespace hetnn {

/// The number that the bits of a stored type stand for, exactly.
float stored_value(DType dtype, uint8_t bits);

/// The least and the largest value of a type of integers, stored ones too.
std::pair<int64_t, int64_t> integer_range(DType dtype);

/// Bits of an element; of a stored type, as many of its byte as say something.
int dtype_bits(DType dtype);

/// Whether a stored type is a float.
bool is_stored_float(DType dtype);

/// How f8e8m0, whose values are the powers of two, rounds what lies between two of them.
enum class PowerRounding : uint8_t { up, down, nearest };

/// The bits of x. Integers keep the low bits of x cut towards 0. Floats round to nearest, ties to even; what is too
/// large, infinities included, becomes the greatest if `saturate`, else inf where the type has it, else NaN where it
/// has that. f4e2m1 always saturates and keeps NaN as -0; f8e8m0 drops the sign.
uint8_t stored_bits(DType dtype, double x, bool saturate = true, PowerRounding rounding = PowerRounding::up);
/// The low bits of x as a stored integer.
uint8_t stored_bits(DType dtype, int64_t x);

/// Elements of any type, stored ones too, as doubles: exact but for i64 and u64 beyond 2^53.
void read_numbers(DType dtype, const std::byte* from, int64_t count, double* to);
/// Integers as elements of a type of integers, stored ones too: the low bits.
void write_integers(DType dtype, const int64_t* from, int64_t count, std::byte* to);

}  // namespace hetnn
