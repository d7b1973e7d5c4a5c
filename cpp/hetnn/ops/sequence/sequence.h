// Sequences of tensors of one element type: two values. `values` holds the elements of the tensors, one tensor after
// another; `shapes` has a row a tensor: its rank, its sizes, and zeros.
#pragma once

#include <string>
#include <vector>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

inline constexpr int64_t kMostAxes = 8, kShapeRow = kMostAxes + 1;

/// The inputs that hold a sequence.
std::vector<InputDef> sequence_inputs();

/// Fails with `<op>_c1` unless the first two inputs can hold a sequence, and one at `place` an index.
void check_sequence(const Call& call);
void check_place(const Call& call, size_t place);

/// The types of a sequence of `count` tensors with so many elements in all.
std::vector<Type> sequence_types(DType dtype, const Dim& elems, const Dim& count);

/// The tensors of a sequence: their shapes, and where their elements begin; the last one's end behind them.
struct Tensors {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int64_t> begins = {0};

  int64_t count() const { return static_cast<int64_t>(shapes.size()); }
  /// Adds one behind the others.
  void add(std::vector<int64_t> shape);
};

/// Of the first two inputs. Fails unless the table's shapes have as many elements as there are values.
Tensors tensors_of(const Evaluation& e);

/// The index that input `place` holds, from the front; absent: `missing`. Fails outside [-count, most).
int64_t place_of(const Evaluation& e, size_t place, int64_t count, int64_t most, int64_t missing);

/// Writes the table of these tensors to output 1.
void write_shapes(const Evaluation& e, const Tensors& tensors);

}  // namespace hetnn::ops
