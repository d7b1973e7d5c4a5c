// arange: evenly spaced integers or reals.
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  if (call.integer("step") == Dim(0)) fail(call, "arange_c2", "step must not be 0. Give the distance of two values.");
  const Dim length = ceil_div(call.integer("end") - call.integer("start"), call.integer("step"));
  if (length.is_static() && length.value() < 0) {
    fail(call, "arange_c1",
         text("end must lie in the direction of step; got ", call.integer("start"), ", ", call.integer("end"), ", ",
              call.integer("step"), "."));
  }
  return {{call.dtype("dtype"), {length}}};
}

void meaning(const Evaluation& e) {
  const auto start = static_cast<uint64_t>(e.call.integer("start").value()),
             step = static_cast<uint64_t>(e.call.integer("step").value());
  const Result y = e.output();
  std::vector<int64_t> values(static_cast<size_t>(y.elems()));
  for (uint64_t k = 0; k < values.size(); ++k) values[k] = static_cast<int64_t>(start + k * step);
  write_as<int64_t>(y, values);
}

}  // namespace

OpDef define_arange() {
  return {.name = "arange",
          .doc = "start, start + step, ... below end, whole numbers.",
          .inputs = {},
          .attrs = {{"start", AttrKind::integer, Dim(0), "the first"},
                    {"end", AttrKind::integer, std::nullopt, "one past the last"},
                    {"step", AttrKind::integer, Dim(1), "the distance"},
                    {"dtype", AttrKind::dtype, DType::i64, "the element type"}},
          .traits = static_cast<uint32_t>(Trait::source),
          .torch = {},
          .onnx = {"Range"},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"arange() {end = 5}", "arange() {start = 2, end = 9, step = 3, dtype = f32}"}};
}

}  // namespace hetnn::ops
