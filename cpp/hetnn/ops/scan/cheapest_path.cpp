// cheapest_path: the way through a matrix of costs, as dynamic time warping looks for.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/meaning.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (x.rank() != 2 || x.dtype != DType::f32) {
    fail(call, "cheapest_path_c1", text("x must be f32 [rows,columns]; got ", to_string(x), "."));
  }
  return {{DType::i64, {Dim(2), call.integer("length")}}};
}

enum class Came : uint8_t { diagonally, from_above, from_the_left };

// costs[i,j] = x[i,j] + the least of costs[i-1,j-1], costs[i-1,j], costs[i,j-1]
std::vector<Came> ways(const float* x, int64_t rows, int64_t columns) {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  std::vector<Came> came(static_cast<size_t>(rows * columns));
  std::vector<float> above(static_cast<size_t>(columns) + 1, kNone), here = above;
  above[0] = 0;
  for (int64_t i = 0; i < rows; ++i, std::swap(above, here)) {
    here[0] = kNone;
    for (int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<size_t>(j);
      const float diagonal = above[at], up = above[at + 1], left = here[at];
      float least = left;
      Came way = Came::from_the_left;
      if (diagonal < up && diagonal < left) {
        least = diagonal;
        way = Came::diagonally;
      } else if (up < diagonal && up < left) {
        least = up;
        way = Came::from_above;
      }
      here[at + 1] = x[i * columns + j] + least;
      came[static_cast<size_t>(i * columns + j)] = way;
    }
    if (i == 0) above[0] = kNone;
  }
  return came;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const int64_t rows = x.shape[0], columns = x.shape[1];
  std::vector<std::pair<int64_t, int64_t>> path;
  if (rows > 0 && columns > 0) {
    const std::vector<Came> came = ways(x.values<float>().data(), rows, columns);
    for (int64_t i = rows - 1, j = columns - 1; i >= 0 && j >= 0;) {
      path.emplace_back(i, j);
      const Came way = came[static_cast<size_t>(i * columns + j)];
      // Along an edge there is one way back.
      const bool up = j == 0 || (i > 0 && way != Came::from_the_left);
      const bool left = i == 0 || (j > 0 && way != Came::from_above);
      if (i == 0 && j == 0) break;
      i -= up ? 1 : 0;
      j -= left ? 1 : 0;
    }
  }
  const auto length = static_cast<int64_t>(path.size());
  define(e, "length", length);
  int64_t* to = e.output(0, {2, length}).values<int64_t>();
  for (int64_t k = 0; k < length; ++k) {
    std::tie(to[k], to[length + k]) = path[static_cast<size_t>(length - 1 - k)];
  }
}

}  // namespace

OpDef define_cheapest_path() {
  return {.name = "cheapest_path",
          .doc =
              "Rows and columns of the places from the first element of a matrix to its last, each next to the one "
              "before, below it or both, whose sum is the least; of equal ways back the left one.",
          .inputs = {{"x", "[rows,columns]"}},
          .attrs = {found_size("length", "the number of places")},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"cheapest_path(f32[3,5]) {length = steps}", "cheapest_path(f32[1,4]) {length = steps}"}};
}

}  // namespace hetnn::ops
