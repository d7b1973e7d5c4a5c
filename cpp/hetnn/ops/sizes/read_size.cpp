// read_size: integers of a tensor as sizes.
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/sizes.h"

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
  define(e, "sizes", values_as<int64_t>(x));
  copy(x, e.output());
}

}  // namespace

OpDef define_read_size() {
  return {.name = "read_size",
          .doc = "The integers of x, as they are, and from here on as sizes.",
          .inputs = {{"x", "integers, rank 0 or 1"}},
          .attrs = {found_sizes("sizes", "a symbol for each integer")},
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"read_size(i64[]) {sizes = [a]}", "read_size(i32[2]) {sizes = [a,b]}"}};
}

}  // namespace hetnn::ops
