// Where the elements of a border come from: for the meaning of pad and for its kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hetnn::ops {

enum class PadMode { constant, reflect, replicate, circular };

/// Nothing for other names.
inline std::optional<PadMode> pad_mode_of(std::string_view name) {
  if (name == "constant") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "replicate") return PadMode::replicate;
  if (name == "circular") return PadMode::circular;
  return std::nullopt;
}

/// The element of an axis of `size` that stands at `at`, before, in or behind it; -1: the constant.
inline int64_t pad_source(PadMode mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size) return at;
  if (mode == PadMode::constant) return -1;
  if (mode == PadMode::replicate) return at < 0 ? 0 : size - 1;
  if (mode == PadMode::circular) return (at % size + size) % size;
  return at < 0 ? -at : 2 * (size - 1) - at;
}

/// For each of the `count` elements that an axis of `size` has with `begin` more before it, where it comes from.
/// What is cropped is wrapped no more, as in torch and ONNX Runtime.
inline std::vector<int64_t> pad_sources(PadMode mode, int64_t size, int64_t begin, int64_t count) {
  const int64_t end = count - size - begin;
  const bool crops_first = mode == PadMode::circular;
  const int64_t first = crops_first ? std::max<int64_t>(-begin, 0) : 0;
  const int64_t kept = crops_first ? size - first - std::max<int64_t>(-end, 0) : size;
  std::vector<int64_t> out;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t from = pad_source(mode, k - begin - first, kept);
    out.push_back(from < 0 ? from : first + from);
  }
  return out;
}

/// Whether an axis has too few elements to repeat for a border, as torch and ONNX Runtime count them. Of a result
/// without elements nothing is asked.
inline bool pads_too_far(PadMode mode, int64_t size, int64_t begin, int64_t end, int64_t result_elems) {
  const int64_t most = std::max(begin, end);
  if (mode == PadMode::constant || most <= 0 || result_elems == 0) return false;
  const int64_t kept = size + std::min<int64_t>(begin, 0) + std::min<int64_t>(end, 0);
  return mode == PadMode::reflect ? most >= size : mode == PadMode::circular ? most > size || kept <= 0 : size == 0;
}

}  // namespace hetnn::ops
