// Bytes from outside that are to be read as bool: in C++ another value than 0 or 1 makes anything happen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

namespace hetnn {

/// Where the first byte stands that is neither 0 nor 1.
inline std::optional<size_t> first_not_bool(std::span<const std::byte> bytes) {
  std::byte all{0};
  for (const std::byte each : bytes) all |= each;
  if (all <= std::byte{1}) return std::nullopt;
  return static_cast<size_t>(std::ranges::find_if(bytes, [](std::byte each) { return each > std::byte{1}; }) -
                             bytes.begin());
}

}  // namespace hetnn
