// Strides of values that are seen in another shape or order, of numbers as of sizes that hold symbols.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hetnn/base/dim.h"

namespace hetnn {

/// Those of dense row-major memory, in elements.
template <typename Size>
std::vector<Size> plain_strides(std::span<const Size> shape) {
  std::vector<Size> out(shape.size(), Size(1));
  for (size_t k = shape.size(); k-- > 1;) out[k - 1] = out[k] * shape[k];
  return out;
}

/// Those by which memory with such strides is seen in shape `to`, of as many elements in the same order; nullopt where
/// none do, or where symbols leave that open.
template <typename Size>
std::optional<std::vector<Size>> strides_in_shape(std::span<const Size> shape, std::span<const Size> strides,
                                                  std::span<const Size> to) {
  const auto is_less = [](const Size& a, const Size& b) { return Dim(a).is_static() && Dim(b).is_static() && a < b; };
  std::vector<Size> kept, apart;  // without axes of one element
  for (size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == Size(1)) continue;
    kept.push_back(shape[k]);
    apart.push_back(strides[k]);
  }
  std::vector<Size> out(to.size(), Size(1));
  size_t from = 0, at = 0;
  while (at < to.size()) {
    if (to[at] == Size(1)) {
      ++at;
      continue;
    }
    if (from == kept.size()) return std::nullopt;
    // As few axes on both sides as have the same number of elements.
    size_t from_end = from + 1, to_end = at + 1;
    Size of_from = kept[from], of_to = to[at];
    while (of_from != of_to) {
      if (is_less(of_to, of_from) && to_end < to.size()) {
        of_to = of_to * to[to_end++];
      } else if (is_less(of_from, of_to) && from_end < kept.size()) {
        of_from = of_from * kept[from_end++];
      } else {
        return std::nullopt;
      }
    }
    for (size_t k = from; k + 1 < from_end; ++k)
      if (apart[k] != apart[k + 1] * kept[k + 1]) return std::nullopt;
    Size step = apart[from_end - 1];
    for (size_t k = to_end; k-- > at;) {
      out[k] = step;
      step = step * to[k];
    }
    from = from_end;
    at = to_end;
  }
  return from == kept.size() ? std::optional(out) : std::nullopt;
}

}  // namespace hetnn
