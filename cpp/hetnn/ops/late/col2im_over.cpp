// col2im_over: patches summed where they overlap in an image.
#include "hetnn/ops/late/late.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

// x [N,C taps,L], image [k], block [k] -> y [N,C,image...].
std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  check_integers(call, 1);
  if (x.rank() != 3) fail(call, "col2im_over_c2", text("x must be [N,C taps,L]; got ", to_string(x), "."));
  return {{x.dtype, call.integers("sizes")}};
}

// One integer for each axis of an image.
std::vector<int64_t> of_axes(const Call& call, std::string_view name, size_t count, int64_t preset) {
  std::vector<int64_t> out;
  for (const Dim& dim : call.integers(name)) out.push_back(dim.value());
  if (out.empty()) out.assign(count, preset);
  if (out.size() != count)
    fail(call, "col2im_over_c3", text(name, " must hold ", count, " integers; got ", out.size(), "."));
  return out;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const std::vector<int64_t> image = values_as<int64_t>(e.input(1)), block = values_as<int64_t>(e.input(2));
  const size_t rank = image.size();
  const std::vector<int64_t> stride = of_axes(e.call, "stride", rank, 1),
                             dilation = of_axes(e.call, "dilation", rank, 1),
                             padding = of_axes(e.call, "padding", 2 * rank, 0);
  std::vector<int64_t> places;
  int64_t taps = 1, windows = 1, pixels = 1;
  for (size_t k = 0; k < rank; ++k) {
    const bool sound = block.size() == rank && image[k] > 0 && image[k] < INT32_MAX && block[k] > 0 &&
                       block[k] < INT32_MAX && stride[k] > 0 && dilation[k] > 0 && pixels < INT32_MAX;
    const int64_t span =
        sound ? image[k] + padding[k] + padding[rank + k] - dilation[k] * (block[k] - 1) - 1 : int64_t{-1};
    if (span < 0) fail(e.call, "col2im_over_c4", "the blocks must lie in the image, and sizes be positive.");
    places.push_back(span / stride[k] + 1);
    taps *= block[k];
    windows *= places[k];
    pixels *= image[k];
  }
  if (x.shape[1] % taps != 0 || x.shape[2] != windows) {
    fail(e.call, "col2im_over_c5",
         text("x must have a multiple of ", taps, " rows and ", windows, " columns; got ", to_string(e.call.input(0)),
              "."));
  }
  const int64_t planes = x.shape[0] * (x.shape[1] / taps);
  std::vector<int64_t> shape = {x.shape[0], x.shape[1] / taps};
  shape.insert(shape.end(), image.begin(), image.end());
  const Result y = late_output(e, std::move(shape));
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* in = x.values<T>().data();
    std::vector<Sum<T>> sums(static_cast<size_t>(pixels));
    int64_t from = 0;
    for (int64_t plane = 0; plane < planes; ++plane) {
      std::fill(sums.begin(), sums.end(), Sum<T>(0));
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t window = 0; window < windows; ++window, ++from) {
          int64_t at = 0, scale = 1, t = tap, w = window;
          bool inside = true;
          for (size_t k = rank; k-- > 0; t /= block[k], w /= places[k], scale *= image[k]) {
            const int64_t place = w % places[k] * stride[k] - padding[k] + t % block[k] * dilation[k];
            inside = inside && place >= 0 && place < image[k];
            at += place * scale;
          }
          if (inside) sums[static_cast<size_t>(at)] += static_cast<Sum<T>>(in[from]);
        }
      }
      for (int64_t k = 0; k < pixels; ++k) {
        y.values<T>()[plane * pixels + k] = static_cast<T>(sums[static_cast<size_t>(k)]);
      }
    }
  });
}

}  // namespace

OpDef define_col2im_over() {
  return {.name = "col2im_over",
          .doc =
              "Patches, a column each, summed where they overlap in an image of "
              "a size that is known at run time.",
          .inputs = {{"x", "[N,C taps,L]"}, {"image", "integers: its size"}, {"block", "integers: that of a patch"}},
          .attrs = {{"stride", AttrKind::integers, std::vector<Dim>{}, "of every axis; none: 1"},
                    {"padding", AttrKind::integers, std::vector<Dim>{}, "before every axis, then behind; none: 0"},
                    {"dilation", AttrKind::integers, std::vector<Dim>{}, "of every axis; none: 1"},
                    sizes_attr()},
          .traits = static_cast<uint32_t>(Trait::wide),
          .onnx = {"Col2Im"},
          .infer = infer,
          .meaning = meaning,
          .samples = {"col2im_over(f32[1,8,9], i64[2] {4, 4}, i64[2] {2, 2}) "
                      "{sizes = [1,2,4,4]}"}};
}

}  // namespace hetnn::ops
