// What a row of formulas.inc is over expressions: itself, its derivatives, and itself of complex numbers.
#pragma once

#include <string>
#include <vector>

#include "hetnn/ops/elementwise/expression.h"
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

/// Of the operands, x and y if they are not called otherwise, and of the constants, by their names.
Expression value_of(Function function, std::string x = "x", std::string y = "y");
Expression value_of(Predicate predicate, std::string x = "x", std::string y = "y");
/// The derivative by each operand; none where the function has no formula of the graph's operators.
std::vector<Expression> slopes_of(Function function);
/// The real and the imaginary part, of the operands x.re, x.im, y.re and y.im; none where complex numbers have no such
/// function.
std::vector<Expression> complex_parts_of(Function function);

}  // namespace hetnn::ops
