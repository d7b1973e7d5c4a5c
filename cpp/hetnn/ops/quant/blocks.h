// Integers in blocks: along one axis each run of `block` elements has a scale, and perhaps a zero point, of its own,
// for each index of the other axes. Both are operands, of the shape of the integers with that axis divided by the
// block.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hetnn/ops/op_def.h"

namespace hetnn::ops {

/// The axis of the blocks, which the call's attribute names, within [0, rank) of its first input. Fails with the
/// operator's labels:
/// <op>_c2  the block holds one element or more,
/// <op>_c3  the axis is one of the input's,
/// <op>_c4  scales (input 1) are real, and zero points (input 2, optional) are of the type `codes` or that of the
///          scales; both have the input's shape with ceil(size / block) along the axis,
/// <op>_c5  scales that are known are finite, and not 0 where `divides`.
int check_blocks(const Call& call, DType codes, bool divides);

/// Fails with `label` where scales, input `index`, are known and one is NaN, infinite or, where `divides`, 0.
void check_scales(const Call& call, size_t index, std::string_view label, bool divides);

/// That accelerators have no scales of blocks, which a call with the attributes `axis` and `block` has.
Constraint no_blocks(std::string_view label);
/// What accelerators want in their place, and why.
inline constexpr std::string_view kNoBlocks =
    "An accelerator's weights have one scale, or one for each filter, and none for each block.";
inline constexpr std::string_view kInPlaceOfBlocks = "one scale for each filter";

/// The elements of any type as doubles.
std::vector<double> numbers_of(const View& view);

/// Calls f(begin, count, first): `count` elements side by side from `begin` on lie under scales that begin at `first`
/// and repeat every `inner` of them (`inner`: elements of one index of the axis).
template <typename F>
void for_blocks(std::span<const int64_t> shape, int axis, int64_t block, F&& f) {
  int64_t outer = 1, inner = 1;
  for (int k = 0; k < axis; ++k) outer *= shape[static_cast<size_t>(k)];
  for (size_t k = static_cast<size_t>(axis) + 1; k < shape.size(); ++k) inner *= shape[k];
  const int64_t size = shape[static_cast<size_t>(axis)];
  int64_t first = 0;
  for (int64_t n = 0; n < outer; ++n) {
    for (int64_t at = 0; at < size; at += block, first += inner) {
      const int64_t some = at + block < size ? block : size - at;
      f((n * size + at) * inner, some * inner, first, inner);
    }
  }
}

}  // namespace hetnn::ops
