// The instructions of one piece of a layer, wherever its operands lie in the scratchpad.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/backends/npu/network.h"
#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"

namespace hetnn::backends::scheduling {

/// Rows of pixels in the scratchpad; in a ring, rows from `wrap_row` on lie at `wrap_addr`.
struct View {
  int64_t addr = 0, row_pitch = 0, pixel_pitch = 0;
  int64_t wrap_row = 0, wrap_addr = 0;
};

/// What of a layer's result is computed, from which of its channels and input.
struct Piece {
  int64_t n = 0, row = 0, rows = 1, column = 0, columns = 1, filter = 0, filters = 1, channel = 0, channels = 1;
  bool first_part = true, last_part = true;  // of the channels
  Span in_rows{}, in_columns{};
};

struct Operands {
  View in = {}, addend = {}, out = {};  // of a pair, `addend` is the second operand
  int64_t parameters = 0, parameter_pitch = 0, second = 0, third = 0, addend_factors = 0;  // as Parameters has them
  int64_t sums = 0;
};

std::vector<npu::Instruction> instructions_of(const npu::Spec& spec, const Layer& layer, const Piece& piece,
                                              const Operands& operands);

}  // namespace hetnn::backends::scheduling
