// read_size: integers of a tensor as sizes.
#include "hetnn/base/convert.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& sizes = call.integers("sizes");
  if (!is_integer(x.dtype) || x.quant || x.rank() > 1 || elements(x.shape) != Dim(static_cast<int64_t>(sizes.size()))) {
    fail(call, "read_size_c1",
         text("x must hold an integer for each of its ", sizes.size(), " symbols, in rank 0 or 1; got ", to_string(x),
              "."));
  }
  return {x};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const std::vector<Dim>& sizes = e.call.integers("sizes");
  visit_dtype(x.dtype, [&](auto zero) {
    const auto values = x.values<decltype(zero)>();
    for (size_t k = 0; k < sizes.size(); ++k) e.results.define(sizes[k].symbol_name(), convert<int64_t>(values[k]));
  });
  copy(x, e.output());
}

}  // namespace

OpDef define_read_size() {
  return {.name = "read_size",
          .doc = "The integers of x, as they are, and from here on as sizes.",
          .inputs = {{"x", "integers, rank 0 or 1"}},
          .attrs = {{"sizes", AttrKind::integers, std::nullopt, "a symbol for each integer", true}},
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"read_size(i64[]) {sizes = [a]}", "read_size(i32[2]) {sizes = [a,b]}"}};
}

}  // namespace hetnn::ops
