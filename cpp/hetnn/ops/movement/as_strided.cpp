// as_strided: any walk through the input's elements: windows, diagonals, views.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>&shape = call.integers("shape"), &strides = call.integers("strides");
  if (shape.size() != strides.size()) {
    fail(call, "as_strided_c1",
         text("there must be a stride for each axis; got shape ", to_string(shape), " and strides ", to_string(strides),
              "."));
  }
  const auto negative = [](const Dim& d) { return d.is_static() && d.value() < 0; };
  const Dim& offset = call.integer("offset");
  if (std::ranges::any_of(shape, negative) || std::ranges::any_of(strides, negative) || negative(offset)) {
    fail(call, "as_strided_c2",
         text("no size, stride or offset may be negative; got shape ", to_string(shape), ", strides ",
              to_string(strides), " and offset ", offset, "."));
  }
  Dim last = offset;
  for (size_t k = 0; k < shape.size(); ++k) last = last + (shape[k] - Dim(1)) * strides[k];
  const Dim count = elements(x.shape), picked = elements(shape);
  const bool known = last.is_static() && count.is_static() && picked.is_static();
  if (known && picked.value() > 0 && last.value() >= count.value()) {
    fail(call, "as_strided_c3",
         text("the last element is number ", last, " of ", count, ", which begin at 0. Check the strides."));
  }
  return {{x.dtype, shape}};
}

void meaning(const Evaluation& e) {
  Strides strides;
  for (const Dim& stride : e.call.integers("strides")) strides.push_back(stride.value());
  copy_strided(e.input(0), e.call.integer("offset").value(), strides, e.output());
}

}  // namespace

OpDef define_as_strided() {
  return {.name = "as_strided",
          .doc = "Element [i, j, ...] is number offset + i strides[0] + j strides[1] + ... of the flattened input.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"shape", AttrKind::integers, std::nullopt, "the shape of y"},
                    {"strides", AttrKind::integers, std::nullopt, "of every axis of y, in elements of x"},
                    {"offset", AttrKind::integer, Dim(0), "the first element"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"as_strided(f32[20]) {shape = [4,5], strides = [3,2], offset = 1}",
                      "as_strided(f32[n,16]) {shape = [n,4,7], strides = [16,3,1]}",
                      "as_strided(i64[3,5]) {shape = [3], strides = [6]}"}};
}

}  // namespace hetnn::ops
