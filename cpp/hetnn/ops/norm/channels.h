// Channels of [N,C,...]: what the meanings of norms over the batch walk.
#pragma once

#include <cstdint>
#include <span>

#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// f(offset) for the elements of channel c, image by image.
template <typename F>
void for_channel(std::span<const int64_t> shape, int64_t c, const F& f) {
  int64_t inner = 1;
  for (const int64_t size : shape.subspan(2)) inner *= size;
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t k = 0; k < inner; ++k) f((n * shape[1] + c) * inner + k);
}

/// Element c of an input, or what stands for it where it is absent.
template <typename T>
double of_channel(const Evaluation& e, size_t input, int64_t c, double absent) {
  return e.has(input) ? static_cast<double>(e.input(input).values<T>()[static_cast<size_t>(c)]) : absent;
}

}  // namespace hetnn::ops
