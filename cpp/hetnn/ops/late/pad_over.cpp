// pad_over: a border as wide as an input says.
#include "hetnn/base/convert.h"
#include "hetnn/base/stored.h"
#include "hetnn/ops/late/late.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  if (call.has(2) && (call.input(2).dtype != call.input(0).dtype || elements(call.input(2).shape) != Dim(1))) {
    fail(call, "pad_over_c1",
         text("value must be one ", dtype_name(call.input(0).dtype), "; got ", to_string(call.input(2)), "."));
  }
  for (const size_t k : {1, 3}) {
    if (call.has(k) && (!is_integer(call.input(k).dtype) || call.input(k).rank() != 1)) {
      fail(call, "pad_over_c2",
           text("padding and axes must be integers of rank 1; got ", to_string(call.input(k)), "."));
    }
  }
  return {{call.input(0).dtype, call.integers("sizes")}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const std::vector<int64_t> amounts = values_as<int64_t>(e.input(1));
  std::vector<int64_t> axes = axes_of(e, 3, x.rank());
  if (!e.has(3)) {
    for (int64_t k = 0; k < x.rank(); ++k) axes.push_back(k);
  }
  if (amounts.size() != 2 * axes.size()) {
    fail(e.call, "pad_over_c3",
         text("padding must hold two numbers for each of ", axes.size(), " axes; got ", amounts.size(), "."));
  }
  std::vector<Dim> padding(2 * x.shape.size(), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    if (std::max(amounts[k], amounts[k + axes.size()]) > INT32_MAX)
      fail(e.call, "pad_over_c4", "the padding is too wide.");
    padding[axis] = amounts[k];
    padding[axis + x.shape.size()] = amounts[k + axes.size()];
  }
  double value = 0;
  if (e.has(2)) {
    value = is_stored(x.dtype) ? static_cast<double>(stored_value(x.dtype, static_cast<uint8_t>(e.input(2).data[0])))
                               : values_as<double>(e.input(2))[0];
  }
  evaluate_as(e, "pad", {{"padding", padding}, {"mode", e.call.string("mode")}, {"value", value}});
}

}  // namespace

OpDef define_pad_over() {
  return {.name = "pad_over",
          .doc = "A border as `pad` has it, of widths that are known at run time.",
          .inputs = {{"x", "any shape"},
                     {"padding", "integers: before each of the axes, then behind each"},
                     {"value", "one element of x's type; absent: 0", true},
                     {"axes", "integers; absent: all", true}},
          .attrs = {{"mode", AttrKind::string, std::string("constant"), "constant, reflect, replicate or circular"},
                    sizes_attr()},
          .traits = static_cast<uint32_t>(Trait::movement),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"pad_over(f32[2,3], i64[2] {1, 2}, f32[] {5}, i64[1] {-1}) {sizes = [2,6]}",
                      "pad_over(f32[4,3], i64[4] {1, 1, 2, 0}, _, _) {mode = reflect, sizes = [7,4]}"}};
}

}  // namespace hetnn::ops
