// Reads and writes allocation problems as CSV.
#include "hetnn/memory/csv.h"

#include <array>
#include <charconv>
#include <set>

#include "hetnn/base/error.h"

namespace hetnn::memory {
namespace {

std::string_view trim(std::string_view s) {
  const auto from = s.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return s.substr(from, s.find_last_not_of(" \t\r") - from + 1);
}

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  for (size_t from = 0;;) {
    const size_t to = line.find(separator, from);
    cells.push_back(trim(line.substr(from, to - from)));
    if (to == std::string_view::npos) return cells;
    from = to + 1;
  }
}

int64_t integer(std::string_view cell, std::string_view column, std::string_view name, int line) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) {
    throw InvalidModel(text(name, ":", line, ": ", column, " must be an integer; got '", cell, "'"));
  }
  return value;
}

}  // namespace

Problem read_csv(std::string_view csv, std::string_view name) {
  constexpr std::array<std::string_view, 4> kColumns = {"id", "lower", "upper", "size"};
  std::array<size_t, 4> column = {};
  size_t columns = 0;
  Problem problem;
  std::set<std::string> seen;
  int number = 0;
  for (size_t from = 0; from < csv.size();) {
    const size_t to = std::min(csv.find('\n', from), csv.size());
    const std::string_view line = trim(csv.substr(from, to - from));
    from = to + 1;
    ++number;
    if (line.empty()) continue;
    const std::vector<std::string_view> cells = split(line, ',');
    if (columns == 0) {
      for (size_t c = 0; c < kColumns.size(); ++c) {
        while (column[c] < cells.size() && cells[column[c]] != kColumns[c]) ++column[c];
        if (column[c] == cells.size()) {
          throw InvalidModel(text(name, ":", number, ": expected a header with the columns id,lower,upper,size; '",
                                  kColumns[c], "' is not in '", line, "'"));
        }
      }
      columns = cells.size();
      continue;
    }
    if (cells.size() != columns) {
      throw InvalidModel(
          text(name, ":", number, ": expected ", columns, " cells; got ", cells.size(), " in '", line, "'"));
    }
    const Buffer buffer = {integer(cells[column[1]], "lower", name, number),
                           integer(cells[column[2]], "upper", name, number),
                           integer(cells[column[3]], "size", name, number)};
    if (buffer.upper < buffer.lower || buffer.size_bytes < 0) {
      throw InvalidModel(text(name, ":", number, ": expected lower <= upper and size >= 0; got '", line, "'"));
    }
    problem.ids.emplace_back(cells[column[0]]);
    if (!seen.insert(problem.ids.back()).second) {
      throw InvalidModel(
          text(name, ":", number, ": the id '", problem.ids.back(), "' stands twice; ids must be unique"));
    }
    problem.buffers.push_back(buffer);
  }
  if (columns == 0) {
    throw InvalidModel(text(name, ": expected a header with the columns id,lower,upper,size; the text is empty"));
  }
  return problem;
}

std::string write_csv(const Problem& problem, const std::vector<int64_t>& offsets) {
  HETNN_ASSERT(problem.ids.size() == problem.buffers.size());
  HETNN_ASSERT(offsets.empty() || offsets.size() == problem.buffers.size());
  std::string out = offsets.empty() ? "id,lower,upper,size\n" : "id,lower,upper,size,offset\n";
  for (size_t k = 0; k < problem.buffers.size(); ++k) {
    const Buffer& b = problem.buffers[k];
    out += text(problem.ids[k], ",", b.lower, ",", b.upper, ",", b.size_bytes);
    if (!offsets.empty()) out += text(",", offsets[k]);
    out += "\n";
  }
  return out;
}

}  // namespace hetnn::memory
