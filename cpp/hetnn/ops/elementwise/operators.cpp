// The operators of the rows of formulas.inc.
#include <limits>

#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

#define HETNN_FIELDS(...) \
  { __VA_ARGS__ }
#define HETNN_FUNCTION(name, operands, constants, cost, domain, tolerance, def, ...) \
  OpDef define_##name() { return elementwise(Function::name, HETNN_FIELDS def); }
#define HETNN_FORM(...)
#define HETNN_PREDICATE(name, operands, def, ...) \
  OpDef define_##name() { return elementwise(Predicate::name, HETNN_FIELDS def); }
#define HETNN_BITS(name, operands, def, ...) \
  OpDef define_##name() { return elementwise(Bits::name, HETNN_FIELDS def); }
#include "hetnn/ops/elementwise/formulas.inc"
#undef HETNN_FIELDS

}  // namespace hetnn::ops
