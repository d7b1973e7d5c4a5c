// Loops over several tensors at once, in the storage order of the first: broadcasting, layouts, permutations and slices
// all become strides.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include "hetnn/base/parallel.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// Elements from one index to the next along each logical axis of the view.
std::array<int64_t, 8> strides_of(const TensorView& view);

/// One tensor as the nest sees it: a stride per axis of the iteration space (0 where it is broadcast) and a start.
struct NestOperand {
  std::array<int64_t, 8> strides{};
  int64_t offset = 0;
};

/// Whether `view` broadcasts to `shape`, axes aligned at the right (numpy rules): each is equal or 1.
bool broadcasts(const TensorView& view, std::span<const int64_t> shape);

/// Strides of a `view` that broadcasts to `shape`; `what` names the operand.
NestOperand broadcast_operand(const TensorView& view, std::span<const int64_t> shape, std::string_view what);

/// Offsets of a nest's operands, on the stack for as many as calls usually have: runs allocate nothing.
class NestOffsets {
 public:
  explicit NestOffsets(size_t operands) : all_(operands, &memory_) {}
  int64_t* data() { return all_.data(); }
  size_t size() const { return all_.size(); }
  int64_t& operator[](size_t operand) { return all_[operand]; }

 private:
  std::array<std::byte, 256> few_;
  std::pmr::monotonic_buffer_resource memory_{few_.data(), few_.size()};
  std::pmr::vector<int64_t> all_;
};

class Nest {
 public:
  Nest() = default;
  /// operands[0] decides the order of the loops (its largest stride outermost). Axes that all operands walk evenly are
  /// merged.
  Nest(std::span<const int64_t> shape, std::vector<NestOperand> operands);

  int64_t elems() const { return elems_; }
  size_t operand_count() const { return offsets_.size(); }

  /// Whether two operands have their elements equally far apart along every axis.
  bool same_strides(size_t a, size_t b) const { return strides_[a] == strides_[b]; }
  int64_t offset(size_t operand) const { return offsets_[operand]; }

  /// The two innermost axes: rows() x cols() elements; the stride of an operand along each.
  int64_t rows() const { return dims_[dims_.size() - 2]; }
  int64_t cols() const { return dims_.back(); }
  int64_t row_stride(size_t operand) const { return strides_[operand][dims_.size() - 2]; }
  int64_t col_stride(size_t operand) const { return strides_[operand].back(); }
  /// Whether the elements of two operands that are read or written together have the same places.
  bool lie_alike(size_t a, size_t b) const { return same_strides(a, b) && offsets_[a] == offsets_[b]; }

  /// All axes but the innermost, flattened.
  int64_t outer_rows() const { return cols() == 0 ? 0 : elems_ / cols(); }

  /// offsets[i] = element offset of operand i at outer row `row`, column 0.
  void locate(int64_t row, int64_t* offsets) const;

  /// A rectangle of the two innermost axes. offsets[i] is where operand i starts.
  struct Tile {
    int64_t rows, cols;
    const int64_t* offsets;
  };

  /// Cuts this thread's share of the space into tiles of at most `max_elems` elements, as wide as they can be but for
  /// `max_cols`, and calls f(tile) for each. The cut does not depend on the number of threads.
  template <typename F>
  void for_tiles(int thread, int threads, int64_t max_elems, F f,
                 int64_t max_cols = std::numeric_limits<int64_t>::max()) const {
    each_tile(
        thread, threads, max_elems, max_cols, [](void* body, const Tile& tile) { (*static_cast<F*>(body))(tile); }, &f);
  }

 private:
  // One loop over tiles for all bodies.
  void each_tile(int thread, int threads, int64_t max_elems, int64_t max_cols,
                 void (*call)(void* body, const Tile& tile), void* body) const;

  int64_t elems_ = 1;
  std::vector<int64_t> dims_;                  // at least two, outermost first
  std::vector<std::vector<int64_t>> strides_;  // per operand, per axis
  std::vector<int64_t> offsets_;
};

}  // namespace hetnn::kernels
