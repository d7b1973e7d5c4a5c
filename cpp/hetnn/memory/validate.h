// Checks an assignment of offsets, independently of how it was found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hetnn/memory/problem.h"

namespace hetnn::memory {

/// The first fault of `offsets` for `buffers`, or nothing when it is sound: one offset for each buffer, offset >= 0 and
/// a multiple of `alignment_bytes`, end <= `capacity_bytes`, and no two conflicting buffers overlap. Compares every
/// pair.
std::optional<std::string> validate(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets,
                                    int64_t capacity_bytes, int64_t alignment_bytes = 1);

}  // namespace hetnn::memory
