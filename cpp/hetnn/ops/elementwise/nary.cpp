// nary: a sum with coefficients, a product or an extreme of any number of values, as one layer.
#include <algorithm>
#include <type_traits>

#include "hetnn/base/narrow_float.h"
#include "hetnn/ops/elementwise/vocabulary.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

constexpr size_t kMostInputs = 100;

std::vector<Type> infer(const Call& call) {
  const std::string& op = call.string("op");
  if (op != "add" && op != "mul" && op != "maximum" && op != "minimum")
    fail(call, "nary_c3", text("op must be add, mul, maximum or minimum; got '", op, "'."));
  const size_t count = call.inputs.size();
  if (count > kMostInputs)
    fail(call, "nary_c4", text("it takes at most ", kMostInputs, " inputs; got ", count, ". Split it."));
  std::vector<Type> types = broadcast_inputs(call);
  const size_t coefficients = call.reals("coefficients").size();
  if (coefficients != 0 && (op != "add" || coefficients != count))
    fail(call, "nary_c5",
         text("coefficients go with op add, one for each of ", count, " inputs; got ", coefficients, " with op ", op,
              ". Leave them out or give them all."));
  if (coefficients != 0 && !is_real(types.front()))
    fail(call, "nary_c6",
         text("coefficients are for real values; got ", dtype_name(types.front().dtype), ". Cast the inputs."));
  return types;
}

// One input after the other joins the result so far.
template <typename V, typename Join>
void fold(const Evaluation& e, const Result& y, Join join) {
  const std::vector<double>& coefficients = e.call.reals("coefficients");
  // In order, f16 and bf16 are rounded as nodes of two operands would round them.
  const DType kept = e.call.input(0).dtype;
  const bool rounds = e.call.flag("deterministic") && is_narrow_float(kept);
  const auto rounded = [=](V value) {
    if constexpr (std::is_same_v<V, float>)
      return rounds ? widen_float(kept, narrow_float(kept, value)) : value;
    else
      return value;
  };
  const auto elems = static_cast<size_t>(y.elems());
  V* so_far = y.values<V>();
  bool first = true;
  for (size_t k = 0; k < e.inputs.size(); ++k) {
    const double c = coefficients.empty() ? 1 : coefficients[k];
    if (c == 0 && !e.call.flag("deterministic")) continue;
    const V* x = e.input(k).values<V>().data();
    nest<2>(y.shape, {strides_of(y.shape), broadcast_strides(e.input(k).shape, y.shape)},
            [=](int64_t at, int64_t from) {
              const V term = rounded(vocabulary::Mul(x[from], static_cast<V>(c)));
              so_far[at] = first ? term : rounded(join(so_far[at], term));
            });
    first = false;
  }
  if (first) std::fill_n(so_far, elems, V(0));
}

void evaluate_nary(const Evaluation& e) {
  const std::string& op = e.call.string("op");
  const Result y = e.output();
  visit_wide(y.dtype, [&](auto zero) {
    using V = decltype(zero);
    if (op == "add") {
      fold<V>(e, y, vocabulary::Add<V>);
    } else if (op == "mul") {
      fold<V>(e, y, vocabulary::Mul<V>);
    } else if (op == "maximum") {
      fold<V>(e, y, vocabulary::MaxNan<V>);
    } else {
      fold<V>(e, y, vocabulary::MinNan<V>);
    }
  });
}

}  // namespace

OpDef define_nary() {
  return {.name = "nary",
          .doc =
              "Sum with coefficients, product, maximum or minimum of 1 to 100 inputs, from the first to the last: "
              "y = c1 x1 + c2 x2 + ...",
          .inputs = {{"x", "broadcast with each other", false, true}},
          .attrs = {{"op", AttrKind::string, std::string("add"), "add, mul, maximum or minimum"},
                    {"coefficients", AttrKind::reals, std::vector<double>{}, "of a sum, one an input; none: all 1"},
                    {"deterministic", AttrKind::boolean, false,
                     "round every product and sum to the type's digits, in this order; else an input with coefficient "
                     "0 is not read"}},
          .traits = Trait::elementwise | Trait::compute | Trait::wide,
          .onnx = {"Sum"},
          .infer = infer,
          .meaning = evaluate_nary,
          .work =
              [](const Call& call) {
                return Work{.macs = 0,
                            .flops = elements(call.output().shape) * static_cast<int64_t>(call.inputs.size())};
              },
          .tolerance = 1e-6,
          .samples = {"nary(f32[2,3,5,7], f32[2,3,5,7], f32[2,3,5,7])", "nary(f32[2,3,4,4], f32[3,1,1]) {op = mul}",
                      "nary(f32[n,4], f32[4], f32[n,1]) {coefficients = [1.0, -1.0, 0.5]}",
                      "nary(f32[2,9], f32[2,9], f32[9], f32[1]) {op = maximum}", "nary(f32[5]) {op = minimum}"}};
}

}  // namespace hetnn::ops
