// Values in fewer bits than they are computed in: f16, bf16 and quantized integers, to f32 and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// Whether values of this type are computed in f32 and then rounded: f16, bf16, quantized integers.
bool is_narrow(const Type& type);
/// Whether the call reads or writes such a value.
bool has_narrow(const Call& call);

/// The reals that a tensor of a narrow type stands for, as f32; any other tensor as it is.
Tensor widen(const Tensor& tensor, const Type& type);
/// f32 rounded once to a narrow type: to nearest even, integers saturated and NaN as 0.
Tensor narrow(const Tensor& tensor, const Type& type);

/// Calls f(begin, end, index of the scale) for each run of elements that lie under one scale.
template <typename F>
void for_runs(std::span<const int64_t> shape, int64_t elems, const Quant& quant, F&& f) {
  if (elems == 0) return;
  if (quant.per_tensor()) return f(int64_t{0}, elems, size_t{0});
  int64_t run = 1;
  for (size_t k = static_cast<size_t>(quant.axis) + 1; k < shape.size(); ++k) run *= shape[k];
  for (int64_t begin = 0, index = 0; begin < elems; begin += run, ++index)
    f(begin, begin + run, static_cast<size_t>(index) % quant.scales.size());
}

/// The reals that integers stand for, as f32.
Tensor dequantize(const View& from, const Quant& quant);
/// f32 to the integers of `type`: to nearest, of two equally near the even one or the one further from 0; saturated,
/// NaN as 0.
void quantize(const Tensor& reals, const Type& type, std::byte* to, bool halves_away = false);

}  // namespace hetnn::ops
