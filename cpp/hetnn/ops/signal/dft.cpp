// dft: the discrete Fourier transform along an axis, with complex numbers as pairs of reals.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/signal/fourier.h"

namespace hetnn::ops {
namespace {

// x [...,S,...,1 or 2] -> y [...,K,...,2]; of the inverse of one half, [...,N,...,1].
std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (!is_float(x.dtype) || x.rank() < 2 || (x.shape.back() != Dim(1) && x.shape.back() != Dim(2))) {
    fail(call, "dft_c1", text("x must be real or complex numbers, [...,1] or [...,2]; got ", to_string(x), "."));
  }
  const bool half = call.flag("onesided"), inverse = call.flag("inverse");
  const Dim length = call.integer("length"), axis = call.integer("axis");
  Shape y = x.shape;
  y.back() = half && inverse ? 1 : 2;
  if (!axis.is_static()) {
    if (half || length != Dim(0)) {
      fail(call, "dft_c2", text("an axis that is known at run time keeps the length and both sides; got ", axis, "."));
    }
    return {{x.dtype, y}};
  }
  const int at = axis_of(call, axis, x.rank());
  if (at == x.rank() - 1) fail(call, "dft_c3", "the last axis holds the parts of a number; choose another one.");
  Dim& size = y[static_cast<size_t>(at)];
  const Dim given = half && inverse ? 2 * (size - 1) : size;
  size = length == Dim(0) ? given : length;
  if (size.is_static() && size.value() < 1) fail(call, "dft_c4", text("the length must be positive; got ", size, "."));
  if (half && !inverse) size = floor_div(size, 2) + 1;
  return {{x.dtype, y}};
}

void meaning(const Evaluation& e) {
  using Complex = std::complex<double>;
  const View& x = e.input(0);
  const Result y = e.output();
  const bool half = e.call.flag("onesided"), inverse = e.call.flag("inverse");
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), x.rank()));
  const int64_t parts = x.shape.back(), in = x.shape[axis], out = y.shape[axis],
                stated = e.call.integer("length").value();
  const int64_t length = stated > 0 ? stated : half && inverse ? 2 * (in - 1) : in;
  int64_t outer = 1, inner = 1;
  for (size_t k = 0; k < axis; ++k) outer *= x.shape[k];
  for (size_t k = axis + 1; k + 1 < x.shape.size(); ++k) inner *= x.shape[k];
  visit_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto from = x.values<T>();
    T* to = y.values<T>();
    const auto write = [](double value) { return static_cast<T>(static_cast<Wide<T>>(value)); };
    std::vector<Complex> line(static_cast<size_t>(length));
    for (int64_t row = 0; row < outer * inner; ++row) {
      const int64_t o = row / inner, i = row % inner;
      std::fill(line.begin(), line.end(), Complex());
      for (int64_t k = 0; k < std::min(in, length); ++k) {
        const auto at = static_cast<size_t>(((o * in + k) * inner + i) * parts);
        Complex& value = line[static_cast<size_t>(k)];
        value.real(static_cast<double>(static_cast<Wide<T>>(from[at])));
        if (parts == 2) value.imag(static_cast<double>(static_cast<Wide<T>>(from[at + 1])));
      }
      if (half && inverse) {  // the other half are conjugates of this one
        line[0].imag(0);
        if (length % 2 == 0) line[static_cast<size_t>(length / 2)].imag(0);
        for (int64_t k = length / 2 + 1; k < length; ++k) {
          line[static_cast<size_t>(k)] = std::conj(line[static_cast<size_t>(length - k)]);
        }
      }
      const std::vector<Complex> turned = fourier(line, inverse);
      const double scale = inverse ? 1 / static_cast<double>(length) : 1;
      for (int64_t k = 0; k < out; ++k) {
        const Complex value = turned[static_cast<size_t>(k)] * scale;
        T* at = to + ((o * out + k) * inner + i) * y.shape.back();
        at[0] = write(value.real());
        if (y.shape.back() == 2) at[1] = write(value.imag());
      }
    }
  });
}

}  // namespace

OpDef define_dft() {
  return {
      .name = "dft",
      .doc =
          "The discrete Fourier transform along an axis of complex numbers, the pairs of the last axis, or of "
          "reals; the inverse is divided by its length.",
      .inputs = {{"x", "[...,1] or [...,2]"}},
      .attrs = {{"axis", AttrKind::integer, Dim(-2), "the axis, not the last"},
                {"length", AttrKind::integer, Dim(0), "cut or filled up with 0 to so many; 0: as many as there are"},
                {"inverse", AttrKind::boolean, false, "whether the inverse"},
                {"onesided", AttrKind::boolean, false,
                 "whether only the frequencies up to half the length are given, or, of the inverse, read"}},
      .onnx = {"DFT"},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 1e-5,
      .samples = {"dft(f32[2,12,1])", "dft(f32[1,7,2]) {inverse = true}",
                  "dft(f32[3,n,1]) {onesided = true, length = 8}",
                  "dft(f32[2,5,3,2]) {axis = 1, inverse = true, onesided = true}"}};
}

}  // namespace hetnn::ops
