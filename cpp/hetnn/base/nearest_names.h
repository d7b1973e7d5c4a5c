// What a misspelt name was probably meant to be, for the errors that name it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hetnn {

/// Insertions, deletions and substitutions that lead from one text to the other.
size_t edit_distance(std::string_view a, std::string_view b);

/// At most `most` of `names`, the nearest to `wrong` first; ties keep their order.
std::vector<std::string_view> nearest_names(std::string_view wrong, std::vector<std::string_view> names, size_t most);

}  // namespace hetnn
