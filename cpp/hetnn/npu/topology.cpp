// Topologies of layers, as SCALE-Sim writes them.
#include <charconv>
#include <sstream>

#include "hetnn/base/error.h"
#include "hetnn/npu/timing.h"

namespace hetnn::npu {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) {
    const size_t begin = cell.find_first_not_of(" \t\r"), end = cell.find_last_not_of(" \t\r");
    out.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  while (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

constexpr double kMostWords = 9007199254740992;  // 2^53; the filter is no larger than the input

int64_t ceil_div64(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::vector<TopologyLayer> read_topology(std::string_view csv, std::string_view name) {
  std::vector<TopologyLayer> out;
  std::istringstream lines{std::string(csv)};
  size_t number = 0, sizes = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> cells = cells_of(line);
    if (cells.empty()) continue;
    if (sizes == 0) {  // the header
      if (cells.size() != 4 && cells.size() != 8) {
        throw InvalidModel(text(name, ", line ", number,
                                ": a header names a layer and 7 sizes of a convolution or 3 of a GEMM; found ",
                                cells.size(), " columns."));
      }
      sizes = cells.size() - 1;
      continue;
    }
    if (cells.size() < sizes + 1)
      throw InvalidModel(
          text(name, ", line ", number, ": expected ", sizes + 1, " columns; found ", cells.size(), "."));
    std::vector<int64_t> v;
    for (size_t k = 1; k <= sizes; ++k) {
      int64_t value = 0;
      auto [end, error] = std::from_chars(cells[k].data(), cells[k].data() + cells[k].size(), value);
      if (error != std::errc() || end != cells[k].data() + cells[k].size() || value < 1 || value > (1 << 24)) {
        throw InvalidModel(text(name, ", line ", number, ", column ", k + 1, ": expected a size from 1 to ", 1 << 24,
                                "; found '", cells[k], "'."));
      }
      v.push_back(value);
    }
    if (sizes == 3) {
      out.push_back({cells[0], v[0], v[2], v[1], v[0] * v[2]});
      continue;
    }
    if (v[2] > v[0] || v[3] > v[1]) {
      throw InvalidModel(text(name, ", line ", number, ": the filter ", v[2], "x", v[3], " is larger than the input ",
                              v[0], "x", v[1], "."));
    }
    if (static_cast<double>(v[0]) * static_cast<double>(v[1]) * static_cast<double>(v[4]) > kMostWords)
      throw InvalidModel(text(name, ", line ", number, ": the layer reads more than 2^53 values. Make it smaller."));
    const int64_t pixels = ceil_div64(v[0] - v[2] + v[6], v[6]) * ceil_div64(v[1] - v[3] + v[6], v[6]);
    out.push_back({cells[0], pixels, v[2] * v[3] * v[4], v[5], v[0] * v[1] * v[4]});
  }
  if (out.empty()) throw InvalidModel(text(name, ": expected a header and at least one layer; found none."));
  return out;
}

}  // namespace hetnn::npu
