// bitcast: the same bits as another element type of the same width.
#include <algorithm>

#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const DType to = call.dtype("to"), from = call.input(0).dtype;
  if (dtype_bytes(to) != dtype_bytes(from)) {
    fail(call, "bitcast_c1",
         text("the element types must be of one width; got ", dtype_name(from), " and ", dtype_name(to), "."));
  }
  return {{to, call.input(0).shape}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const int64_t bytes = x.elems() * dtype_bytes(x.dtype);
  if (y.dtype == DType::boolean) {  // a bool is 0 or 1
    std::transform(x.data, x.data + bytes, y.data, [](std::byte bits) { return std::byte{bits != std::byte{0}}; });
  } else {
    std::copy_n(x.data, bytes, y.data);
  }
}

}  // namespace

OpDef define_bitcast() {
  return {.name = "bitcast",
          .doc = "The same bits as another element type of the same width; as bools, whether any bit is set.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"to", AttrKind::dtype, std::nullopt, "the element type of y"}},
          .traits = Trait::conversion | Trait::integral,
          .primitive = Primitive::rearrange,
          .onnx = {{"BitCast", 26, "x to"}},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"bitcast(f32[2,3]) {to = i32}", "bitcast(i64[n]) {to = f64}"}};
}

}  // namespace hetnn::ops
