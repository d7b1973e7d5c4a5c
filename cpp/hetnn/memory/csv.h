// The CSV form of allocation problems: a header `id,lower,upper,size`, then one buffer a line.
#pragma once

#include <string>
#include <string_view>

#include "hetnn/memory/problem.h"

namespace hetnn::memory {

/// Reads a problem. Columns may stand in any order and further columns (an `offset`, say) are passed over; lifetimes
/// are half-open. `name` is what messages call the text. Throws InvalidModel naming the line, what was found and
/// expected.
Problem read_csv(std::string_view csv, std::string_view name);

/// Writes `id,lower,upper,size,offset`, or without the last column when `offsets` is empty.
std::string write_csv(const Problem& problem, const std::vector<int64_t>& offsets = {});

}  // namespace hetnn::memory
