// reshape: the same elements in row-major order under another shape.
#include <algorithm>

#include "hetnn/base/strides.h"
#include "hetnn/ops/batch.h"
#include "hetnn/ops/late.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& shape = call.integers("shape");
  const Dim have = elements(x.shape), want = elements(shape);
  const bool sizes =
      std::none_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static() && d.value() < 0; });
  if (!sizes || (have != want && (have - want).is_static())) {
    fail(call, "reshape_c1",
         text("shape must hold as many elements as the input; got ", to_string(shape), " for ", to_string(x.shape),
              ". Check the sizes."));
  }
  return {{x.dtype, shape}};
}

// -1 is what is left, 0 the size of x there.
void resolve(const Evaluation& e, Attrs& attrs) {
  const View& x = e.input(0);
  auto& shape = std::get<std::vector<Dim>>(attrs.at("shape"));
  int64_t open = -1, rest = 1;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == Dim(0) && !e.call.flag("allow_zero") && k < x.shape.size()) shape[k] = x.shape[k];
    const int64_t size = shape[k].value();
    if (size == -1 && open < 0) {
      open = static_cast<int64_t>(k);
    } else if (size < 0 || (size > 0 && rest > INT64_MAX / size)) {
      fail(e.call, "reshape_to_c2", text("the shape holds ", size, "; sizes are positive, and one may be -1."));
    } else {
      rest *= size;
    }
  }
  if (open >= 0) shape[static_cast<size_t>(open)] = rest == 0 ? 0 : x.elems() / rest;
}

void add_or_drop(const Evaluation& e, Attrs& attrs) {
  const View& x = e.input(0);
  const bool adds = e.call.flag("add");
  const auto rank = static_cast<int64_t>(e.call.integers("sizes").size());
  std::vector<int64_t> axes = axes_of(e, 1, adds ? rank : x.rank());
  std::sort(axes.begin(), axes.end());
  std::vector<Dim> shape(x.shape.begin(), x.shape.end());
  if (adds) {
    for (const int64_t axis : axes) {
      if (axis > static_cast<int64_t>(shape.size())) fail(e.call, "unit_axes_c2", text("there is no axis ", axis, "."));
      shape.insert(shape.begin() + axis, 1);
    }
  } else {
    for (size_t k = axes.size(); k-- > 0;) {
      if (shape[static_cast<size_t>(axes[k])] != Dim(1)) {
        fail(e.call, "unit_axes_c3", text("axis ", axes[k], " of ", to_string(shape), " is not 1."));
      }
      shape.erase(shape.begin() + axes[k]);
    }
  }
  attrs.emplace("shape", std::move(shape));
}

}  // namespace

namespace {

std::optional<Shape> seen(const Call& call, const Shape& strides) {
  return strides_in_shape(std::span<const Dim>(call.input(0).shape), std::span<const Dim>(strides),
                          std::span<const Dim>(call.output().shape));
}

}  // namespace

OpDef define_reshape() {
  return {.name = "reshape",
          .doc = "The same elements in row-major order under another shape.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"shape", AttrKind::integers, std::nullopt, "the new shape"}},
          .traits = Trait::movement | Trait::view,
          .primitive = Primitive::rearrange,
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = [](const Evaluation& e) { copy(e.input(0), e.output()); },
          .seen = seen,
          .keeps_batch = keeps_batch_of_first,
          .constraints = {},
          .tolerance = 0,
          .samples = {"reshape(f32[2,3,4]) {shape = [6,4]}", "reshape(f32[n,4]) {shape = [2*n,2]}",
                      "reshape(f32[3,2,4]) {shape = [3,8]}"}};
}

OpDef define_reshape_to() {
  return late_form<define_reshape, resolve>(
      {.name = "reshape_to",
       .doc = "The same elements in a shape that is known at run time: -1 is what is left, 0 the size of x there.",
       .inputs = {{"x", "any shape"}, {"shape", "integers"}},
       .attrs = {{"allow_zero", AttrKind::boolean, false, "whether 0 means no elements"}},
       .samples = {"reshape_to(f32[2,3,4], i64[3] {0, -1, 2}) {sizes = [2,6,2]}"}});
}

OpDef define_unit_axes() {
  return late_form<define_reshape, add_or_drop>(
      {.name = "unit_axes",
       .doc = "The same elements with axes of one element added, or dropped, that are known at run time.",
       .inputs = {{"x", "any shape"}, {"axes", "integers: of the result where they are added, else of x"}},
       .attrs = {{"add", AttrKind::boolean, true, "whether they are added"}},
       .samples = {"unit_axes(f32[2,3], i64[1] {-1}) {sizes = [2,3,1]}",
                   "unit_axes(f32[2,1,3], i64[1] {1}) {add = false, sizes = [2,3]}"}});
}

}  // namespace hetnn::ops
