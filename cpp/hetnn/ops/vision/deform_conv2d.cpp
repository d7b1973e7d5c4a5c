// deform_conv2d: a convolution whose taps are moved by offsets.
#include "hetnn/ops/vision/bilinear.h"
#include "hetnn/ops/window.h"

namespace hetnn::ops {
namespace {

// x [N,C,H,W], weight [O,C/g,kh,kw], offset [N,2 og kh kw,h,w], bias [O], mask [N,og kh kw,h,w] -> y [N,O,h,w].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &weight = call.input(1), &offset = call.input(2);
  for (const Type* each : {&x, &weight, &offset}) {
    if (each->rank() != 4 || !is_float(each->dtype) || each->dtype != x.dtype) {
      fail(call, "deform_conv2d_c1",
           text("x, weight and offset must be of rank 4 and one real type; got ", to_string(x), ", ", to_string(weight),
                " and ", to_string(offset), "."));
    }
  }
  if (!is_static(weight.shape)) fail(call, "deform_conv2d_c2", "the weight's shape must be fixed.");
  const std::vector<int64_t> filter = values(weight.shape);
  const int64_t groups = fixed_integer(call, "groups"), offset_groups = fixed_integer(call, "offset_groups");
  if (groups < 1 || offset_groups < 1 || filter[0] % groups != 0 || x.shape[1] != Dim(filter[1] * groups) ||
      filter[1] * groups % offset_groups != 0) {
    fail(call, "deform_conv2d_c3",
         text("the channels must be divided by the groups; got x ", to_string(x.shape), ", weight ",
              to_string(weight.shape), ", groups ", groups, ", groups of offsets ", offset_groups, "."));
  }
  const int64_t taps = filter[2] * filter[3];
  Shape y = {x.shape[0], filter[0]};
  const Window window = window_of(call);
  for (size_t k = 0; k < 2; ++k) y.push_back(window[k].count(x.shape[2 + k]));
  const Shape wanted = {x.shape[0], 2 * offset_groups * taps, y[2], y[3]},
              by = {x.shape[0], offset_groups * taps, y[2], y[3]};
  if (offset.shape != wanted || (call.has(4) && call.input(4) != Type{x.dtype, by}) ||
      (call.has(3) && call.input(3) != Type{x.dtype, {filter[0]}})) {
    fail(call, "deform_conv2d_c4",
         text("offset must be ", to_string(wanted), ", mask ", to_string(by), " and bias [", filter[0], "]; got ",
              to_string(offset), call.has(4) ? text(" and ", to_string(call.input(4))) : "",
              call.has(3) ? text(" and ", to_string(call.input(3))) : "", "."));
  }
  return {{x.dtype, y}};
}

template <typename T>
void compute(const Evaluation& e, T* y) {
  const T *x = e.input(0).values<T>().data(), *weight = e.input(1).values<T>().data(),
          *offset = e.input(2).values<T>().data();
  const Window window = window_of(e.call);
  const int64_t groups = e.call.integer("groups").value(), offset_groups = e.call.integer("offset_groups").value();
  const auto in = e.input(0).shape, filter = e.input(1).shape;
  const int64_t height = e.input(2).shape[2], width = e.input(2).shape[3], taps = filter[2] * filter[3];
  const T* bias = e.has(3) ? e.input(3).values<T>().data() : nullptr;
  const T* mask = e.has(4) ? e.input(4).values<T>().data() : nullptr;
  const int64_t channels_of_offset = in[1] / offset_groups, filters_of_group = filter[0] / groups;
  for (int64_t n = 0; n < in[0]; ++n) {
    for (int64_t o = 0; o < filter[0]; ++o) {
      for (int64_t i = 0; i < height; ++i) {
        for (int64_t j = 0; j < width; ++j) {
          double sum = bias ? static_cast<double>(bias[o]) : 0.0;
          for (int64_t c = 0; c < filter[1]; ++c) {
            const int64_t channel = o / filters_of_group * filter[1] + c, part = channel / channels_of_offset;
            const auto* plane = x + (n * in[1] + channel) * in[2] * in[3];
            for (int64_t t = 0; t < taps; ++t) {
              const int64_t place = ((n * offset_groups + part) * taps + t) * 2;
              const auto moved = [&](int64_t axis) {
                return static_cast<double>(offset[((place + axis) * height + i) * width + j]);
              };
              const double row =
                  static_cast<double>(window[0].begin(i) + t / filter[3] * window[0].dilation) + moved(0);
              const double column =
                  static_cast<double>(window[1].begin(j) + t % filter[3] * window[1].dilation) + moved(1);
              const double scale = mask ? static_cast<double>(mask[(place / 2 * height + i) * width + j]) : 1.0;
              sum += scale * static_cast<double>(weight[(o * filter[1] + c) * taps + t]) *
                     bilinear(plane, in[2], in[3], row, column);
            }
          }
          *y++ = static_cast<T>(sum);
        }
      }
    }
  }
}

void meaning(const Evaluation& e) {
  const Result y = e.output();
  visit_wide_reals(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    compute<T>(e, y.values<T>());
  });
}

}  // namespace

OpDef define_deform_conv2d() {
  return {
      .name = "deform_conv2d",
      .doc =
          "A convolution whose taps are moved by offsets, (y, x) for each, and weighed by a mask; between pixels "
          "values are linear, outside they are 0.",
      .inputs = {{"x", "[N,C,H,W]"},
                 {"weight", "[O,C/groups,kh,kw]"},
                 {"offset", "[N,2 offset_groups kh kw,h,w]"},
                 {"bias", "[O]", true},
                 {"mask", "[N,offset_groups kh kw,h,w]", true}},
      .attrs = {{"stride", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"},
                {"padding", AttrKind::integers, std::vector<Dim>{0, 0}, "height, width or top, left, bottom, right"},
                {"dilation", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"},
                {"groups", AttrKind::integer, Dim(1), "groups of channels and filters"},
                {"offset_groups", AttrKind::integer, Dim(1), "groups of channels with offsets of their own"}},
      .traits = static_cast<uint32_t>(Trait::wide),
      .onnx = {"DeformConv"},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 1e-5,
      .samples = {"deform_conv2d(f32[1,2,5,5], f32[3,2,2,2], f32[1,8,4,4], _, _)",
                  "deform_conv2d(f32[2,4,5,6], f32[4,2,3,3], f32[2,36,5,6], f32[4], f32[2,18,5,6]) {padding = "
                  "[1,1], groups = 2, offset_groups = 2}"}};
}

}  // namespace hetnn::ops
