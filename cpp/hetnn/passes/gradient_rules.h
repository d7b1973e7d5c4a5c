// Gradient rules: what stands in a file OPERATOR.gradient beside the operator's own, read once.
//
//   # x's part of what comes to y
//   d(x) = y * (d(y) - sum(y * d(y)) {axes = [axis], keepdim = true})
//
// A statement begins at the start of a line. It says what comes to an input, `d(x)`, of what came to the outputs,
// `d(y)`, or what an output is of smaller operators, `y`, whose own rules apply then; any other name is for the file
// itself, and `_` an input that is absent. Behind `if` stands what attributes must be, and the first statement of a
// name that holds is taken: without one the operator has no derivative there. Names are those of inputs, outputs and
// attributes. `+ - * /` and calls of operators make nodes of tensors, in which numbers are constants; of sizes they
// compute. What an absent input is multiplied with or added to stays as it is. A part is summed or spread to its
// input's shape by itself. Functions of sizes stand in gradient_functions.cpp.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hetnn::passes {

struct Term {
  enum class Kind : uint8_t {
    integer,
    real,
    string,
    name,
    call,    // of an operator or a function of sizes: text(in) {attrs}
    list,    // [in]
    infix,   // in[0] text in[1]
    negate,  // -in[0]
    field,   // output `text` of in[0]
    entry,   // in[0][in[1]]: of a list, or an output of a node
    cut,     // in[0][in[1]:in[2]]
  };
  Kind kind = Kind::integer;
  std::string text = {};
  double number = 0;
  std::vector<Term> in = {};
  std::vector<std::pair<std::string, Term>> attrs = {};
};

struct Statement {
  std::string name;
  bool is_gradient;  // d(name)
  Term value;
  std::vector<Term> condition;  // at most one
};

using GradientRule = std::vector<Statement>;

/// InternalError with what cannot be read.
GradientRule read_gradient_rule(std::string_view op, std::string_view source);

/// Of an operator by its name; null where there is no such file.
const GradientRule* gradient_rule(std::string_view op);

}  // namespace hetnn::passes
