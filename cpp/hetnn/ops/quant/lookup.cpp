// lookup: any function of one i8 value, as a table.
#include "hetnn/base/error.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const Tensor& table = call.tensor("table");
  if (x.dtype != DType::i8 || table.dtype() != DType::i8 || table.elems() != 256) {
    fail(call, "lookup_c1",
         text("input and table must be i8, the table of 256 entries; got input ", to_string(x), " and table of ",
              table.elems(), " ", dtype_name(table.dtype()), "."));
  }
  return {{DType::i8, x.shape}};
}

void meaning(const Evaluation& e) {
  const auto in = e.input(0).values<int8_t>(), table = e.call.tensor("table").values<int8_t>();
  int8_t* to = e.output().values<int8_t>();
  for (const int8_t x : in) *to++ = table[static_cast<size_t>(x + 128)];
}

std::string ramp() {
  std::string out;
  for (int k = -128; k < 128; ++k) out += (k > -128 ? "," : "") + std::to_string(-k / 2);
  return out;
}

}  // namespace

OpDef define_lookup() {
  static const std::string sample = "lookup(i8{0.05:-3}[2,3,4,5]) {table = i8[256] {" + ramp() + "}, q_scale = [0.1]}";
  return {.name = "lookup",
          .doc = "Any function of one i8 value, as a table: y = table[x + 128].",
          .inputs = {{"x", "any shape, i8"}},
          .attrs = {{"table", AttrKind::tensor, std::nullopt, "256 entries of i8, for x from -128 to 127"}},
          .traits = Trait::elementwise | Trait::integral,
          .primitive = Primitive::table,
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {sample}};
}

}  // namespace hetnn::ops
