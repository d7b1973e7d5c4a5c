// Tensors split at an axis.
#include "hetnn/kernels/move/indices.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {

AxisSplit axis_split(std::string_view op, const KernelCall& call, const TensorView& x, const TensorView& part) {
  const auto plain = [](const TensorView& view) { return view.layout == Layout::plain; };
  const DType index = call.inputs[1].dtype;
  if (!std::ranges::all_of(call.inputs, plain) || !plain(call.outputs[0]) ||
      (index != DType::i64 && index != DType::i32))
    throw Unsupported(text(op, " reads and writes plain tensors, with indices of i64 or i32; got ", view_text(x),
                           " and ", dtype_name(index), ". Insert a copy."));
  const int64_t given = call.params.integer("axis", 0), axis = given < 0 ? given + x.rank : given;
  if (axis < 0 || axis >= std::max(x.rank, 1) || x.rank != part.rank)
    throw InvalidModel(text(op, ": axis ", given, " must be one of x, whose rank the other operand has; got ",
                            view_text(x), " and ", view_text(part), ". Check the call."));
  AxisSplit out;
  for (int k = 0; k < x.rank; ++k) {
    const int64_t size = x.dims[static_cast<size_t>(k)], count = part.dims[static_cast<size_t>(k)];
    if (k == axis) {
      out.size = size;
      out.count = count;
    } else if (size != count) {
      throw Unsupported(text(op, " takes operands that differ along its axis alone; got ", view_text(x), " and ",
                             view_text(part), ". Cut x."));
    } else {
      (k < axis ? out.outer : out.inner) *= size;
    }
  }
  return out;
}

}  // namespace hetnn::kernels
