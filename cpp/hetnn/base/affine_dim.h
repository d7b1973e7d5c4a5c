// Sizes of inputs that are a multiple of a symbol plus a number: what a given size makes of the symbol.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "hetnn/base/dim.h"

namespace hetnn {

/// The symbol of `dim`, where that has a single one, and the value at which `dim` is `size`; nullopt where none is
/// found: `dim` is taken for a line, and the value is tried.
inline std::optional<std::pair<std::string, int64_t>> solved(const Dim& dim, int64_t size) {
  std::set<std::string> symbols;
  dim.collect_symbols(symbols);
  if (symbols.size() != 1) return std::nullopt;
  const std::string& symbol = *symbols.begin();
  const auto at = [&](int64_t value) { return dim.evaluate({{symbol, value}}); };
  int64_t slope = 0, start = 0, above = 0;
  if (__builtin_sub_overflow(at(2), at(1), &slope) || __builtin_sub_overflow(at(1), slope, &start) ||
      __builtin_sub_overflow(size, start, &above) || slope == 0 || (slope == -1 && above == INT64_MIN) ||
      above % slope != 0)
    return std::nullopt;
  const int64_t value = above / slope;
  if (at(value) != size) return std::nullopt;
  return std::pair(symbol, value);
}

}  // namespace hetnn
