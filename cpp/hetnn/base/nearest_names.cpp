// Edit distance (Levenshtein), one row at a time.
#include "hetnn/base/nearest_names.h"

#include <algorithm>

namespace hetnn {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

std::vector<std::string_view> nearest_names(std::string_view wrong, std::vector<std::string_view> names, size_t most) {
  std::stable_sort(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(wrong, a) < edit_distance(wrong, b);
  });
  names.resize(std::min(names.size(), most));
  return names;
}

}  // namespace hetnn
