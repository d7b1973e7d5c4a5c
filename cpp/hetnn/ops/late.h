// Attributes that values say when a call runs: the sizes of what it gives are symbols that the call defines. An
// operator's late form has an input in place of such an attribute and computes by the operator's own meaning.
#pragma once

#include <string_view>
#include <vector>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// The attribute `sizes`: the shape of y that the values give.
AttrDef sizes_attr();

/// y of x's element type, of the shape that `sizes` says.
std::vector<Type> infer_late(const Call& call);

/// Fails with `<op>_c1` unless the inputs [first, last) that there are hold integers, in rank 0 or 1.
void check_integers(const Call& call, size_t first, size_t last = SIZE_MAX);

/// The axes in an input of a value of that rank, in [0, rank), each once. Fails when they are not; absent or empty:
/// none.
std::vector<int64_t> axes_of(const Evaluation& e, size_t input, int64_t rank);

/// Fails with `contract` unless the sizes of parts are none below 0 and add up to the size of what is split.
void check_parts(const Evaluation& e, std::string_view contract, const std::vector<int64_t>& parts, int64_t size);

/// Output 0 of that shape, whose sizes get it as their values. Fails when there are more or fewer of them.
Result late_output(const Evaluation& e, std::vector<int64_t> shape);

/// Output 0 by the meaning of another operator of the first input.
void evaluate_as(const Evaluation& e, std::string_view op, Attrs attrs);

using Resolve = void(const Evaluation&, Attrs&);
std::vector<Type> infer_late_form(const Call& call, const OpDef& fixed);
void evaluate_late_form(const Evaluation& e, const OpDef& fixed, Resolve* resolve);
OpDef late_form_of(const OpDef& fixed, OpDef late);

/// The late form of the operator that `fixed` defines, whose traits and other attributes it has. An input behind x that
/// bears the name of an attribute says it; `resolve` makes of what was said the attributes of the fixed form, where
/// they are not the same.
template <OpDef (*fixed)(), Resolve* resolve = nullptr>
OpDef late_form(OpDef late) {
  static const std::string_view name = fixed().name;
  late.infer = [](const Call& call) { return infer_late_form(call, OpTable::global().get(name)); };
  late.meaning = [](const Evaluation& e) { evaluate_late_form(e, OpTable::global().get(name), resolve); };
  return late_form_of(fixed(), std::move(late));
}

}  // namespace hetnn::ops
