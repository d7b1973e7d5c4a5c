// fold: patches summed where they overlap in an image.
#include <algorithm>

#include "hetnn/ops/late.h"
#include "hetnn/ops/window.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (x.rank() != 3) fail(call, "fold_c1", text("x must be [N,C taps,L]; got ", to_string(x), "."));
  const Shape& image = call.integers("image");
  if (image.empty() || image.size() > 8)
    fail(call, "fold_c2", text("image must have 1 to 8 axes; got ", to_string(image), "."));
  const Window window = window_of(call, image.size());
  Dim count = 1, taps = 1;
  for (size_t k = 0; k < image.size(); ++k) {
    const bool fits = !image[k].is_static() || (image[k].value() > 0 && image[k].value() < INT32_MAX);
    const Dim windows = fits && is_positive(window) ? window[k].count(image[k]) : 0;
    if (windows.is_static() && windows.value() < 1) {
      fail(call, "fold_c3",
           text("windows must lie in the image, and sizes be positive; got image ", to_string(image), ", block ",
                to_string(call.integers("block")), ", padding ", to_string(call.integers("padding")), "."));
    }
    count = count * windows;
    taps = taps * window[k].kernel;
  }
  const bool known = x.shape[2].is_static() && count.is_static();
  if (mod(x.shape[1], taps) != Dim(0) || (known && x.shape[2] != count)) {
    fail(call, "fold_c4",
         text("x must have a multiple of ", taps, " rows and ", count, " columns; got ", to_string(x), "."));
  }
  Shape y = {x.shape[0], floor_div(x.shape[1], taps)};
  y.insert(y.end(), image.begin(), image.end());
  return {{x.dtype, y}};
}

// What one tap adds to a plane: windows along an axis are `step` elements apart, and those in `inside` fall on it.
struct Axis {
  Interval inside;
  int64_t first, step, windows;
};

template <typename T>
T plus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a + b;
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Adds what one tap reads of every window; gives where the next tap's elements begin.
template <typename T>
const T* add_tap(const Axis* axis, size_t rank, const T* from, T* to) {
  const auto [inside, first, step, windows] = *axis;
  if (rank == 1) {
    for (int64_t w = inside.begin; w < inside.end; ++w) to[first + w * step] = plus(to[first + w * step], from[w]);
    return from + windows;
  }
  int64_t below = 1;
  for (size_t k = 1; k < rank; ++k) below *= axis[k].windows;
  for (int64_t w = inside.begin; w < inside.end; ++w)
    add_tap(axis + 1, rank - 1, from + w * below, to + first + w * step);
  return from + windows * below;
}

// y[n,c,i·stride + t·dilation - pad, …] = sum over taps t, in their order, of x[n,(c,t,…),(i,…)]
void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  if (x.elems() == 0) return;  // then y is empty, too
  const size_t rank = y.shape.size() - 2;
  const Window window = window_of(e.call, rank);
  const int64_t taps = taps_of(window), pixels = y.elems() / (y.shape[0] * y.shape[1]);
  std::vector<std::vector<Axis>> axes(static_cast<size_t>(taps), std::vector<Axis>(rank));
  int64_t count = 1;
  for (size_t k = rank, scale = 1, repeat = 1; k-- > 0;) {
    const int64_t size = y.shape[2 + k];
    const int64_t places = window[k].count(size).value();
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t t = tap / static_cast<int64_t>(repeat) % window[k].kernel;
      const int64_t first = t * window[k].dilation - window[k].before, pitch = static_cast<int64_t>(scale);
      axes[static_cast<size_t>(tap)][k] = {window[k].windows(t, places, size), first * pitch, window[k].stride * pitch,
                                           places};
    }
    count *= places;
    scale *= static_cast<size_t>(size);
    repeat *= static_cast<size_t>(window[k].kernel);
  }
  if (x.shape[2] != count)
    fail(e.call, "fold_c4", text("x must have ", count, " columns; got ", to_string(e.call.input(0)), "."));
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    T* to = y.values<T>();
    std::fill_n(to, y.elems(), T(0));
    for (int64_t plane = 0; plane < y.shape[0] * y.shape[1]; ++plane, to += pixels)
      for (const std::vector<Axis>& tap : axes) from = add_tap(tap.data(), rank, from, to);
  });
}

}  // namespace

OpDef define_fold() {
  return {
      .name = "fold",
      .doc =
          "Patches, a column each, summed where they overlap in an image: element t of patch i adds to place "
          "i*s+t*d-p of its plane. Sums grow in the element type, tap by tap.",
      .inputs = {{"x", "[N,C taps,L]"}},
      .attrs = {{"image", AttrKind::integers, std::nullopt, "its size along every axis"},
                {"block", AttrKind::integers, std::nullopt, "the size of a patch along every axis"},
                {"stride", AttrKind::integers, std::vector<Dim>{1}, "of every axis"},
                {"padding", AttrKind::integers, std::vector<Dim>{0}, "before every axis, then behind"},
                {"dilation", AttrKind::integers, std::vector<Dim>{1}, "of every axis"}},
      .traits = static_cast<uint32_t>(Trait::wide),
      .infer = infer,
      .meaning = meaning,
      .tolerance = 1e-5,
      .samples = {"fold(f32[1,8,9]) {image = [4,4], block = [2,2]}",
                  "fold(f32[2,6,3]) {image = [7], block = [3], stride = [2], padding = [1,1], dilation = [2]}",
                  "fold(i64[1,12,8]) {image = [3,3,5], block = [2,2,3], dilation = [1,1,2], padding = [0,0,0,0,0,1]}",
                  "fold(f32[n,4,m]) {image = [m+3], block = [4]}"}};
}

OpDef define_col2im_over() {
  return late_form<define_fold>(
      {.name = "col2im_over",
       .doc = "Patches, a column each, summed where they overlap as `fold` has it, in an image of a size that is known "
              "at run time.",
       .inputs = {{"x", "[N,C taps,L]"}, {"image", "integers: its size"}, {"block", "integers: that of a patch"}},
       .onnx = {"Col2Im"},
       .samples = {"col2im_over(f32[1,8,9], i64[2] {4, 4}, i64[2] {2, 2}) {sizes = [1,2,4,4]}"}});
}

}  // namespace hetnn::ops
