// Reductions as operators.
#include "hetnn/ops/reduce/reduction.h"

#include "hetnn/ops/batch.h"

namespace hetnn::ops {

bool has_extreme_of_none(DType dtype) { return is_float(dtype) || dtype_bytes(dtype) == 8; }

std::vector<Type> infer_reduction(const Call& call) {
  const DType dtype = call.input(0).dtype;
  if (call.op->find_attr("of_none") && call.flag("of_none") && !has_extreme_of_none(dtype)) {
    fail(call, text(call.op->name, "_c2"),
         text("of_none is for floats and integers of 64 bits; got ", to_string(call.input(0)), ". Cast it first."));
  }
  return {{dtype, reduced_shape(call)}};
}

void check_not_empty(const Evaluation& e, const Result& y) {
  if (e.input(0).elems() > 0 || y.elems() == 0) return;
  if (e.call.op->find_attr("of_none") && e.call.flag("of_none")) return;
  fail(e.call, text(e.call.op->name, "_c1"),
       text("no elements have no extreme; got ", to_string(e.call.input(0)), " and axes ",
            to_string(e.call.integers("axes")), ". Give elements along the axes."));
}

OpDef reduction(const Reduction& of, std::vector<Type> (*infer)(const Call&)) {
  std::vector<AttrDef> attrs = {{"axes", AttrKind::integers, std::vector<Dim>{}, "the axes; empty: all"},
                                {"keepdim", AttrKind::boolean, false, "whether reduced axes stay, as 1"}};
  if (of.of_none) {
    attrs.push_back({"of_none", AttrKind::boolean, false,
                     "whether no elements give the infinity or the end of the type that all others replace; else they "
                     "are refused"});
  }
  return {.name = of.name,
          .doc = of.doc,
          .inputs = {{"x", "any shape"}},
          .attrs = std::move(attrs),
          .traits = Trait::compute | Trait::wide,
          .torch = of.torch,
          .onnx = of.onnx,
          .infer = infer,
          .meaning = of.meaning,
          .work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.input(0).shape)}; },
          .keeps_batch = keeps_batch_beside_axes,
          .constraints = {},
          .tolerance = of.tolerance,
          .samples = of.samples};
}

}  // namespace hetnn::ops
