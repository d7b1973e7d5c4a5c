// Elementwise functions: what formulas.inc says of each, and operators made of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "hetnn/ops/op_def.h"

namespace hetnn::ops {

enum class Function : uint8_t {
#define HETNN_FUNCTION(name, ...) name,
#include "hetnn/ops/elementwise/formulas.inc"
};
enum class Predicate : uint8_t {
#define HETNN_PREDICATE(name, ...) name,
#include "hetnn/ops/elementwise/formulas.inc"
};
enum class Bits : uint8_t {
#define HETNN_BITS(name, ...) name,
#include "hetnn/ops/elementwise/formulas.inc"
};

/// Whether a function's time is its bytes or its arithmetic.
enum class Cost : uint8_t { light, transcendental };
/// Integers too, or floating point alone.
enum class Domain : uint8_t { numbers, reals };

/// A row of formulas.inc but for its formula.
struct FunctionDef {
  std::string_view name;
  int operands;
  std::array<std::string_view, 2> constants;  // attributes of its operator; the unused are empty
  Cost cost;
  Domain domain;
  double tolerance;

  int constant_count() const { return constants[0].empty() ? 0 : constants[1].empty() ? 1 : 2; }
};

/// All rows, in the order of the enumeration.
std::span<const FunctionDef> functions();
const FunctionDef& function_def(Function function);
/// Whether it is a row of the kind HETNN_SPECIAL.
bool is_special(Function function);
std::optional<Function> function_from_name(std::string_view name);

std::optional<Predicate> predicate_from_name(std::string_view name);
int operands_of(Predicate predicate);
std::optional<Bits> bits_from_name(std::string_view name);

/// The operator of a function: `def` has its documentation, names and samples; the rest that is not given here (name,
/// inputs, inference, meaning, traits, tolerance) comes from the row. Traits are added to those given.
OpDef elementwise(Function function, OpDef def);
OpDef elementwise(Predicate predicate, OpDef def);
OpDef elementwise(Bits bits, OpDef def);

/// The function of input 0 (and 1, broadcast), with constants from the call's attributes.
void evaluate(Function function, const Evaluation& e);

/// Type of the first input. Fails with `<op>_c1` unless it stands for reals.
std::vector<Type> same_as_real_input(const Call& call);

}  // namespace hetnn::ops
