// reduce_over: a reduction over axes that an input holds.
#include "hetnn/ops/late.h"
#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

// The reductions by name: those with attributes `axes` and `keepdim`.
const OpDef& reduction_of(const Call& call) {
  const OpDef* op = OpTable::global().find(call.string("reduction"));
  if (!op || !op->find_attr("axes") || !op->find_attr("keepdim")) {
    fail(call, "reduce_over_c2", text("'", call.string("reduction"), "' is no reduction over axes."));
  }
  return *op;
}

std::vector<Type> infer(const Call& call) {
  reduction_of(call);
  return infer_late(call);
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const std::vector<int64_t> axes = axes_of(e, 1, x.rank());
  if (axes.empty() && (e.call.flag("none_if_empty") || x.rank() == 0)) {
    evaluate_as(e, kIdentity, {});
  } else {
    const OpDef& op = reduction_of(e.call);
    Attrs attrs = {{"axes", std::vector<Dim>(axes.begin(), axes.end())}, {"keepdim", e.call.flag("keepdim")}};
    if (op.find_attr("of_none") && has_extreme_of_none(x.dtype)) attrs.emplace("of_none", true);
    evaluate_as(e, op.name, std::move(attrs));
  }
}

}  // namespace

OpDef define_reduce_over() {
  return {
      .name = "reduce_over",
      .doc =
          "A reduction over axes that are known at run time; without "
          "any over all.",
      .inputs = {{"x", "any shape"}, {"axes", "integers; negative ones count from the back"}},
      .attrs = {{"reduction", AttrKind::string, std::nullopt, "the name of the operator: sum, mean, reduce_max, ..."},
                {"keepdim", AttrKind::boolean, false, "whether reduced axes stay, as 1"},
                {"none_if_empty", AttrKind::boolean, false, "whether x stays as it is where no axis is given"},
                sizes_attr()},
      .infer = infer,
      .meaning = meaning,
      .samples = {"reduce_over(f32[2,3,4], i64[1] {-1}) {reduction = sum, "
                  "keepdim = true, sizes = [2,3,1]}",
                  "reduce_over(i32[2,3], i64[0]) {reduction = reduce_max, "
                  "sizes = []}"}};
}

}  // namespace hetnn::ops
