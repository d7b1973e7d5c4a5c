// flat_index: indices along several axes as one index into all of them.
#include "hetnn/ops/infer.h"
#include "hetnn/ops/scatter/elements.h"
#include "hetnn/ops/scatter/positions.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const std::vector<Dim>& sizes = call.integers("sizes");
  if (sizes.size() != call.inputs.size()) {
    fail(call, "flat_index_c1",
         text("it must have one index for each size; got ", call.inputs.size(), " and ", sizes.size(), " sizes."));
  }
  const Type& first = call.input(0);
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (call.input(k) != first || !holds_indices(first)) {
      fail(call, "flat_index_c2",
           text("indices must be i64 or i32, of one type and shape; got ", to_string(first), " and ",
                to_string(call.input(k)), ". Cast or expand them."));
    }
  }
  return {{DType::i64, first.shape}};
}

void check(const Call& call, std::span<const View> inputs) {
  const std::vector<Dim>& sizes = call.integers("sizes");
  for (size_t k = 0; k < inputs.size(); ++k) check_positions(call, 3, inputs[k], sizes[k].value(), true);
}

void meaning(const Evaluation& e) {
  const Result y = e.output();
  auto* to = y.values<int64_t>();
  std::fill_n(to, y.elems(), 0);
  for (size_t k = 0; k < e.inputs.size(); ++k) {
    const int64_t size = e.call.integers("sizes")[k].value();
    const std::vector<int64_t> indices = values_as<int64_t>(e.input(k));
    for (size_t i = 0; i < indices.size(); ++i) to[i] = to[i] * size + indices[i] + (indices[i] < 0 ? size : 0);
  }
}

}  // namespace

OpDef define_flat_index() {
  return {.name = "flat_index",
          .doc = "Indices along several axes, each from the start or negative from the end, as one index into all.",
          .inputs = {{"indices", "i64 or i32, of one shape", false, true}},
          .attrs = {{"sizes", AttrKind::integers, std::nullopt, "those of the axes"}},
          .infer = infer,
          .check = check,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"flat_index(i64[3] {1, -1, 0}, i64[3] {0, 3, -4}) {sizes = [2,4]}",
                      "flat_index(i32[2,1] {4, -5}) {sizes = [5]}"}};
}

}  // namespace hetnn::ops
