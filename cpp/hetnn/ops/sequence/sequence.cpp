// What operators on sequences have in common.
#include "hetnn/ops/sequence/sequence.h"

#include <algorithm>

#include "hetnn/base/sizes.h"
#include "hetnn/ops/late.h"

namespace hetnn::ops {

std::vector<InputDef> sequence_inputs() {
  return {{"values", "the elements of the sequence's tensors, one tensor after another: rank 1"},
          {"shapes", "i64[n,9]: of each tensor the rank, the sizes, and zeros"}};
}

void check_sequence(const Call& call) {
  const Type &values = call.input(0), &shapes = call.input(1);
  if (values.rank() != 1 || shapes.dtype != DType::i64 || shapes.rank() != 2 || shapes.shape[1] != Dim(kShapeRow)) {
    fail(call, text(call.op->name, "_c1"),
         text("a sequence must be values of rank 1 and shapes i64[n,", kShapeRow, "]; got ", to_string(values), " and ",
              to_string(shapes), "."));
  }
}

void check_place(const Call& call, size_t place) {
  if (!call.has(place)) return;
  const Type& given = call.input(place);
  if (!is_integer(given.dtype) || given.quant || elements(given.shape) != Dim(1)) {
    fail(call, text(call.op->name, "_c2"), text("place must be one integer; got ", to_string(given), "."));
  }
}

std::vector<Type> sequence_types(DType dtype, const Dim& elems, const Dim& count) {
  return {{dtype, {elems}}, {DType::i64, {count, kShapeRow}}};
}

void Tensors::add(std::vector<int64_t> shape) {
  // Beside a size of 0 the others may be any.
  int64_t elems = std::ranges::count(shape, 0) > 0 ? 0 : 1;
  for (const int64_t size : shape) elems = elems == 0 ? 0 : elems * size;
  shapes.push_back(std::move(shape));
  begins.push_back(begins.back() + elems);
}

Tensors tensors_of(const Evaluation& e) {
  const View &values = e.input(0), &table = e.input(1);
  const int64_t most = values.elems();
  Tensors out;
  const auto rows = table.values<int64_t>();
  for (int64_t k = 0; k < table.shape[0]; ++k) {
    const auto row = rows.subspan(static_cast<size_t>(k * kShapeRow), kShapeRow);
    const int64_t rank = row[0];
    bool fits = rank >= 0 && rank <= kMostAxes;
    std::vector<int64_t> shape;
    if (fits) shape.assign(row.begin() + 1, row.begin() + 1 + rank);
    fits = fits && std::ranges::all_of(shape, [](int64_t size) { return size >= 0; });
    const bool empty = std::ranges::count(shape, 0) > 0;
    int64_t left = most - out.begins.back();
    for (size_t axis = 0; fits && !empty && axis < shape.size(); ++axis) left /= shape[axis];
    if (!fits || (!empty && left < 1)) {
      fail(e.call, text(e.call.op->name, "_c3"),
           text("row ", k, " of the sequence's shapes must be a rank of at most ", kMostAxes,
                " and sizes of no more than ", most, " elements in all; got rank ", rank, ", sizes ",
                to_string(Shape(shape.begin(), shape.end())), "."));
    }
    out.add(std::move(shape));
  }
  if (out.begins.back() != most) {
    fail(e.call, text(e.call.op->name, "_c3"),
         text("the sequence's shapes have ", out.begins.back(), " elements; its values are ", most, "."));
  }
  return out;
}

int64_t place_of(const Evaluation& e, size_t place, int64_t count, int64_t most, int64_t missing) {
  if (!e.has(place)) return missing;
  const int64_t given = values_as<int64_t>(e.input(place))[0];
  if (given < -count || given >= most) {
    fail(e.call, text(e.call.op->name, "_c4"),
         text("the place in a sequence of ", count, " must be in [", -count, ",", most, "); got ", given, "."));
  }
  return given < 0 ? given + count : given;
}

void write_shapes(const Evaluation& e, const Tensors& tensors) {
  int64_t* row = e.output(1, {tensors.count(), kShapeRow}).values<int64_t>();
  for (const std::vector<int64_t>& shape : tensors.shapes) {
    std::fill_n(row, kShapeRow, 0);
    row[0] = static_cast<int64_t>(shape.size());
    std::copy(shape.begin(), shape.end(), row + 1);
    row += kShapeRow;
  }
}

}  // namespace hetnn::ops
