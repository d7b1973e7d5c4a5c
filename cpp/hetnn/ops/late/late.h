// Operators whose axes, bounds or shapes are values of an input: the sizes of
// what they give are symbols that a call defines when it runs.
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

/// Fails with `<op>_c1` unless the inputs from `first` on hold integers, in
/// rank 0 or 1.
void check_integers(const Call& call, size_t first);

/// The axes in an input of a value of that rank, in [0, rank), each once. Fails
/// when they are not; absent or empty: none.
std::vector<int64_t> axes_of(const Evaluation& e, size_t input, int64_t rank);

/// Fails with `contract` unless the sizes of parts are none below 0 and add up to
/// the size of what is split.
void check_parts(const Evaluation& e, std::string_view contract, const std::vector<int64_t>& parts, int64_t size);

/// Output 0 of that shape, whose sizes get it as their values. Fails when there
/// are more or fewer of them.
Result late_output(const Evaluation& e, std::vector<int64_t> shape);

/// Output 0 by the meaning of another operator of the first input.
void evaluate_as(const Evaluation& e, std::string_view op, Attrs attrs);

}  // namespace hetnn::ops
