// dft: the discrete Fourier transform along an axis, with complex numbers as pairs of reals.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/signal/fourier.h"

namespace hetnn::ops {
namespace {

size_t axis_along(const Call& call, const Dim& axis, int rank) {
  const int at = axis_of(call, axis, rank);
  if (at == rank - 1) fail(call, "dft_c3", "the last axis holds the parts of a number; choose another one.");
  return static_cast<size_t>(at);
}

// x [...,S,...,1 or 2] -> y [...,K,...,2]; of the inverse of one half, [...,N,...,1].
std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (!is_float(x.dtype) || x.rank() < 2 || (x.shape.back() != Dim(1) && x.shape.back() != Dim(2))) {
    fail(call, "dft_c1", text("x must be real or complex numbers, [...,1] or [...,2]; got ", to_string(x), "."));
  }
  const bool half = call.flag("onesided"), inverse = call.flag("inverse");
  if (!fourier_scale(call.string("norm"), inverse, 1)) {
    fail(call, "dft_c4", text("norm must be backward, ortho or forward; got '", call.string("norm"), "'."));
  }
  const Dim length = call.integer("length"), axis = call.integer("axis");
  const auto turned = [&](const Dim& size) {
    const Dim whole = length != Dim(0) ? length : half && inverse ? 2 * (size - 1) : size;
    if (whole.is_static() && whole.value() < 1 && axis.is_static()) {
      fail(call, "dft_c2", text("the length must be positive; got ", whole, "."));
    }
    return half && !inverse ? floor_div(whole, 2) + 1 : whole;
  };
  Shape y = x.shape;
  y.back() = half && inverse ? 1 : 2;
  if (axis.is_static()) {
    Dim& size = y[axis_along(call, axis, x.rank())];
    size = turned(size);
    return {{x.dtype, y}};
  }
  // An axis that is known at run time: each size changes by as much as it would if it is that axis' own.
  const Dim at = mod(axis, x.rank());
  for (int k = 0; k + 1 < x.rank(); ++k) {
    Dim& size = y[static_cast<size_t>(k)];
    const Dim own = max(0, 1 - max(at - k, k - at));
    size = size + own * (turned(size) - size);
  }
  return {{x.dtype, y}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const bool half = e.call.flag("onesided"), inverse = e.call.flag("inverse");
  const size_t axis = axis_along(e.call, e.call.integer("axis"), x.rank());
  const int64_t parts = x.shape.back(), in = x.shape[axis], out = y.shape[axis],
                stated = e.call.integer("length").value();
  const int64_t length = stated > 0 ? stated : half && inverse ? 2 * (in - 1) : in;
  if (length < 1) fail(e.call, "dft_c2", text("the length must be positive; got ", length, "."));
  int64_t outer = 1, inner = 1;
  for (size_t k = 0; k < axis; ++k) outer *= x.shape[k];
  for (size_t k = axis + 1; k + 1 < x.shape.size(); ++k) inner *= x.shape[k];
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    using Complex = std::complex<T>;
    const auto from = x.values<T>();
    T* to = y.values<T>();
    const auto scale = static_cast<T>(fourier_scale(e.call.string("norm"), inverse, length).value());
    std::vector<Complex> line(static_cast<size_t>(length));
    for (int64_t row = 0; row < outer * inner; ++row) {
      const int64_t o = row / inner, i = row % inner;
      std::fill(line.begin(), line.end(), Complex());
      for (int64_t k = 0; k < std::min(in, length); ++k) {
        const auto at = static_cast<size_t>(((o * in + k) * inner + i) * parts);
        Complex& value = line[static_cast<size_t>(k)];
        value.real(from[at]);
        if (parts == 2) value.imag(from[at + 1]);
      }
      if (half && inverse) {  // the other half are conjugates of this one
        line[0].imag(0);
        if (length % 2 == 0) line[static_cast<size_t>(length / 2)].imag(0);
        for (int64_t k = length / 2 + 1; k < length; ++k) {
          line[static_cast<size_t>(k)] = std::conj(line[static_cast<size_t>(length - k)]);
        }
      }
      std::vector<Complex> turned = fourier(line, inverse);
      if (parts == 1) {  // reals have these two frequencies without a phase
        turned[0].imag(0);
        if (length % 2 == 0) turned[static_cast<size_t>(length / 2)].imag(0);
      }
      for (int64_t k = 0; k < out; ++k) {
        const Complex value = turned[static_cast<size_t>(k)] * scale;
        T* at = to + ((o * out + k) * inner + i) * y.shape.back();
        at[0] = value.real();
        if (y.shape.back() == 2) at[1] = value.imag();
      }
    }
  });
}

}  // namespace

OpDef define_dft() {
  return {
      .name = "dft",
      .doc =
          "The discrete Fourier transform along an axis of complex numbers, the pairs of the last axis, or of reals.",
      .inputs = {{"x", "[...,1] or [...,2]"}},
      .attrs = {{"axis", AttrKind::integer, Dim(-2), "the axis, not the last"},
                {"length", AttrKind::integer, Dim(0), "cut or filled up with 0 to so many; 0: as many as there are"},
                {"inverse", AttrKind::boolean, false, "whether the inverse"},
                {"onesided", AttrKind::boolean, false,
                 "whether only the frequencies up to half the length are given, or, of the inverse, read"},
                {"norm", AttrKind::string, std::string("backward"),
                 "backward: the inverse is divided by the length; forward: the other is; ortho: both by its root"}},
      .traits = static_cast<uint32_t>(Trait::wide),
      .onnx = {"DFT"},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 1e-5,
      .samples = {
          "dft(f32[2,12,1])", "dft(f32[1,7,2]) {inverse = true}", "dft(f32[3,n,1]) {onesided = true, length = 8}",
          "dft(f32[2,5,3,2]) {axis = 1, inverse = true, onesided = true}", "dft(f32[9,30,1]) {onesided = true}",
          "dft(f32[17,16,2])", "dft(f32[3,20,3,1]) {axis = 1}", "dft(f32[9,16,2]) {inverse = true, onesided = true}",
          "dft(f32[9,9,2]) {inverse = true, onesided = true, length = 21}",
          "dft(f32[9,9,2]) {inverse = true, onesided = true, norm = \"forward\"}",
          "dft(f32[17,16,2]) {norm = \"ortho\"}", "dft(f32[9,30,1]) {onesided = true, norm = \"forward\"}",
          "dft(f32[3,5,2]) {inverse = true, norm = \"ortho\"}"}};
}

}  // namespace hetnn::ops
