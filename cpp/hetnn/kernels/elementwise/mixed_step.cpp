// Comparisons, choices and turned functions on a stretch of a tile.
#include "hetnn/kernels/elementwise/mixed_step.h"

#include <algorithm>

#include "hetnn/base/error.h"

namespace hetnn::kernels {
namespace {

// Rows of a stretch one behind the other: as they lie, or brought to `room`.
template <typename T>
const std::byte* together(const T* from, int64_t ld, int64_t step, int64_t rows, int64_t cols, std::byte* room) {
  if (step == 1 && (rows == 1 || ld == cols)) return reinterpret_cast<const std::byte*>(from);
  auto* to = reinterpret_cast<T*>(room);
  for (int64_t r = 0; r < rows; ++r, from += ld, to += cols) {
    if (step == 1) {
      std::copy_n(from, cols, to);
    } else if (step == 0) {
      std::fill_n(to, cols, *from);
    } else {
      for (int64_t c = 0; c < cols; ++c) to[c] = from[c * step];
    }
  }
  return room;
}

}  // namespace

MixedStep::MixedStep(const Step& step)
    : count_(static_cast<size_t>(operand_count(step)) + 1),
      main_(static_cast<size_t>(step.main)),
      dtype_(step.dtype),
      makes_truths_(result_type(step, DType::f32) == DType::boolean),
      c0_(step.values.empty() ? 0 : static_cast<float>(step.values[0])),
      c1_(step.values.size() < 2 ? 0 : static_cast<float>(step.values[1])) {
  if (const std::optional<ops::Predicate> predicate = ops::predicate_from_name(step.function)) {
    compare_ = compare_function(*predicate, dtype_);
  } else if (step.function == kChoice) {
    choose_ = truth_ops().choose;
  } else if (!conversion_of(step)) {
    map_ = block_function(*ops::function_from_name(step.function));
  }
}

void MixedStep::apply(const float* in, int64_t ld_in, const MixedRows& out, int64_t rows, int64_t cols,
                      const SumStep::Operand* operands) const {
  alignas(64) std::byte rooms[3][kMixedElems * sizeof(float)];
  alignas(64) float made[kMixedElems];
  const int64_t n = rows * cols;
  std::array<const std::byte*, 3> from{};
  for (size_t k = 0; k < this->operands(); ++k) {
    const size_t position = position_of(k);
    const auto& [at, ld, step] = operands[k];
    from[position] = is_truth(position)
                         ? together(static_cast<const uint8_t*>(at), ld, step, rows, cols, rooms[position])
                         : together(static_cast<const float*>(at), ld, step, rows, cols, rooms[position]);
  }
  from[main_] = reads_truths() ? reinterpret_cast<const std::byte*>(out.truths)
                               : together(in, ld_in, 1, rows, cols, rooms[main_]);
  if (compare_ != nullptr)
    return compare_runs(compare_, bytes_of(0), {from[0], true}, {from[count_ - 1], true}, n, out.truths);
  if (choose_ != nullptr && makes_truths_) {
    const auto truths = [&](size_t k) { return reinterpret_cast<const uint8_t*>(from[k]); };
    return truth_ops().choose_truths(truths(0), truths(1), truths(2), out.truths, n);
  }
  const auto floats = [&](size_t k) { return reinterpret_cast<const float*>(from[k]); };
  const bool dense = rows == 1 || out.ld == cols;
  float* to = dense ? out.at : made;
  if (map_ != nullptr) {
    map_({.in = floats(0),
          .ld_in = n,
          .out = to,
          .ld_out = n,
          .rows = 1,
          .cols = n,
          .operand = floats(1),
          .ld_operand = n,
          .col_step = 1,
          .c0 = c0_,
          .c1 = c1_});
  } else if (choose_ != nullptr) {
    choose_(reinterpret_cast<const uint8_t*>(from[0]), floats(1), floats(2), to, n);
  } else {
    truth_ops().widen(out.truths, to, n);
  }
  for (int64_t k = 0; !dense && k < rows; ++k) std::copy_n(made + k * cols, cols, out.at + k * out.ld);
}

}  // namespace hetnn::kernels
