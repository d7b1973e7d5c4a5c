// mel_weights: triangular filters that make mel bands of a spectrum.
#include <algorithm>
#include <cmath>

#include "hetnn/base/convert.h"
#include "hetnn/ops/late.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  for (size_t k = 0; k < 5; ++k) {
    const Type& each = call.input(k);
    if (elements(each.shape) != Dim(1) || (k < 3 ? !is_integer(each.dtype) : !is_float(each.dtype))) {
      fail(call, "mel_weights_c1",
           text("bands, length and rate must be one integer each, the limits "
                "one real each; got ",
                to_string(each), "."));
    }
  }
  return {{call.dtype("dtype"), call.integers("sizes")}};
}

void meaning(const Evaluation& e) {
  const auto number = [&](size_t k) { return values_as<double>(e.input(k))[0]; };
  const double bands = number(0), length = number(1), rate = number(2);
  if (!(bands >= 1 && length >= 1 && rate >= 1 && bands * length < 1e9)) {
    fail(e.call, "mel_weights_c2",
         text("bands, length and rate must be positive; got ", bands, ", ", length, ", ", rate, "."));
  }
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(number(3)), high = mel(number(4));
  const auto rows = static_cast<int64_t>(std::floor(length / 2)) + 1, columns = static_cast<int64_t>(bands);
  std::vector<int64_t> edges;  // of the bands, as places in the spectrum
  for (int64_t k = 0; k < columns + 2; ++k) {
    const double hertz = 700 * (std::pow(10.0, ((high - low) / (bands + 2) * static_cast<double>(k) + low) / 2595) - 1);
    edges.push_back(std::clamp<int64_t>(convert<int64_t>(std::floor((length + 1) * hertz / rate)), 0, rows - 1));
  }
  const Result y = late_output(e, {rows, columns});
  std::vector<double> weights(static_cast<size_t>(rows * columns), 0.0);
  for (int64_t k = 0; k < columns; ++k) {
    const auto at = static_cast<size_t>(k);
    const int64_t first = edges[at], middle = edges[at + 1], last = edges[at + 2];
    double* to = weights.data() + k;
    for (int64_t row = first; row <= middle; ++row) {
      const int64_t rise = middle - first;
      to[row * columns] = rise == 0 ? 1.0 : static_cast<double>(row - first) / static_cast<double>(rise);
    }
    for (int64_t row = middle; row < last; ++row)
      to[row * columns] = static_cast<double>(last - row) / static_cast<double>(last - middle);
  }
  write_as<double>(y, weights);
}

}  // namespace

OpDef define_mel_weights() {
  return {.name = "mel_weights",
          .doc =
              "Triangular filters, [length / 2 + 1, bands], that make mel bands "
              "of a spectrum.",
          .inputs = {{"bands", "one integer"},
                     {"length", "one integer: of the transform"},
                     {"rate", "one integer: samples a second"},
                     {"lower", "one real: the lower edge in hertz"},
                     {"upper", "one real: the upper edge in hertz"}},
          .attrs = {{"dtype", AttrKind::dtype, DType::f32, "the element type of y"}, sizes_attr()},
          .onnx = {"MelWeightMatrix"},
          .infer = infer,
          .meaning = meaning,
          .samples = {"mel_weights(i32[] {8}, i32[] {16}, i32[] {8192}, f32[] {0}, "
                      "f32[] {4096}) {sizes = [9,8]}"}};
}

}  // namespace hetnn::ops
