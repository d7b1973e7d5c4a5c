// What resizing of images shares.
#pragma once

#include <vector>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/resample.h"

namespace hetnn::ops {

/// Types of an image in the attribute `size`. Fails with `<op>_c1` for another rank or `<op>_c2` for bad scales.
inline std::vector<Type> infer_upsample(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& size = call.integers("size");
  if (x.rank() != 4 || size.size() != 2) {
    fail(call, text(call.op->name, "_c1"),
         text("x must be [N,C,H,W] and size two integers; got ", to_string(x), " and ", to_string(size), "."));
  }
  if (x.shape[2] == Dim(0) || x.shape[3] == Dim(0))
    fail(call, text(call.op->name, "_c3"), text("an image of no pixels has no other size; got ", to_string(x), "."));
  const size_t scales = call.reals("scales").size();
  if (scales != 0 && scales != 2)
    fail(call, text(call.op->name, "_c2"), text("scales must be none or two; got ", scales, "."));
  return {{x.dtype, {x.shape[0], x.shape[1], size[0], size[1]}}};
}

/// The given scale of height (0) or width (1), else 0.
inline double scale_of(const Call& call, size_t axis) {
  const std::vector<double>& scales = call.reals("scales");
  return scales.empty() ? 0 : scales[axis];
}

/// The operator, with its own attributes behind those that all have.
inline OpDef upsample(OpDef def) {
  def.inputs = {{"x", "[N,C,H,W]"}};
  std::vector<AttrDef> attrs = {{"size", AttrKind::integers, std::nullopt, "height, width of the output"},
                                {"scales", AttrKind::reals, std::vector<double>{},
                                 "output pixels per input pixel, height and width; none: the ratio of the sizes"}};
  attrs.insert(attrs.end(), def.attrs.begin(), def.attrs.end());
  def.attrs = std::move(attrs);
  if (!def.infer) def.infer = infer_upsample;
  def.keeps_batch = keeps_batch_of_first;
  return def;
}

}  // namespace hetnn::ops
