// What all calls with blocks must fulfil.
#include "hetnn/ops/quant/blocks.h"

#include <cmath>

#include "hetnn/base/error.h"
#include "hetnn/base/stored.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {

void check_scales(const Call& call, size_t index, std::string_view label, bool divides) {
  const Tensor* scales = call.constant(index);
  if (!scales) return;
  const std::vector<double> values = numbers_of(*scales);
  for (size_t k = 0; k < values.size(); ++k) {
    if (std::isfinite(values[k]) && (values[k] != 0 || !divides)) continue;
    fail(call, label,
         text("the scale of every block must be finite", divides ? " and not 0" : "", "; got ", values[k],
              " for block ", k, " of ", values.size(), ". Quantize the tensor again."));
  }
}

Constraint no_blocks(std::string_view label) {
  return {"npu", label, kNoBlocks, [](const Call& call) -> std::optional<std::pair<std::string, std::string>> {
            return std::pair<std::string, std::string>{
                text("blocks of ", call.integer("block"), " along axis ", call.integer("axis")), kInPlaceOfBlocks};
          }};
}

std::vector<double> numbers_of(const View& view) {
  std::vector<double> out(static_cast<size_t>(view.elems()));
  read_numbers(view.dtype, view.data, view.elems(), out.data());
  return out;
}

int check_blocks(const Call& call, DType codes, bool divides) {
  const std::string op(call.op->name);
  const Type &x = call.input(0), &scales = call.input(1);
  const int64_t block = fixed_integer(call, "block");
  if (block < 1) {
    fail(call, op + "_c2",
         text("a block must hold 1 element or more; got block = ", block, ". Leave the blocks out for one scale."));
  }
  const Dim given = call.integer("axis");
  if (!given.is_static() || given.value() < -x.rank() || given.value() >= x.rank()) {
    fail(call, op + "_c3",
         text("the axis of the blocks must be in [", -x.rank(), ",", x.rank(), "); got ", given, " for ", to_string(x),
              ". Check the axis."));
  }
  const int axis = static_cast<int>(given.value() < 0 ? given.value() + x.rank() : given.value());
  Shape of_blocks = x.shape;
  of_blocks[static_cast<size_t>(axis)] = ceil_div(of_blocks[static_cast<size_t>(axis)], Dim(block));
  const bool zeros = call.has(2);
  const bool fit = scales.shape == of_blocks && is_float(scales.dtype) &&
                   (!zeros || (call.input(2).shape == of_blocks &&
                               (call.input(2).dtype == codes || call.input(2).dtype == scales.dtype)));
  if (!fit) {
    fail(call, op + "_c4",
         text("blocks of ", block, " along axis ", axis, " of ", to_string(x), " need real scales ",
              hetnn::to_string(of_blocks), ", and zero points of ", dtype_name(codes),
              " or of the scales' type as many; got ", to_string(scales),
              zeros ? text(" and ", to_string(call.input(2))) : "", ". Check the scales and the size of a block."));
  }
  check_scales(call, 1, op + "_c5", divides);
  return axis;
}

}  // namespace hetnn::ops
