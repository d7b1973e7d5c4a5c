// Whether the caller's outputs lie apart from one another and from the inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hetnn::runtime {

struct Memory {
  const std::byte* begin;
  int64_t bytes;
};

/// InvalidModel naming an output that shares bytes with another or with an input: kernels write outputs while they
/// still read inputs.
void refuse_overlap(std::span<const Memory> outputs, std::span<const Memory> inputs);

}  // namespace hetnn::runtime
