// What kernels share that address elements along an axis by indices.
#pragma once

#include <string_view>

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// Indices that are looked at at once, before any is used: they stay in the first-level cache.
inline constexpr int64_t kIndexBlock = 1024;

/// Whether all numbers lie in [least, most], of which neither is as large as to overflow.
bool all_within(const int64_t* numbers, int64_t count, int64_t least, int64_t most);
bool all_within(const int32_t* numbers, int64_t count, int64_t least, int64_t most);

/// How a call's indices, its second input, are read: i64 or i32, those below 0 from the end of an axis of `size`, or
/// not at all.
struct IndexReading {
  bool wide = true, from_end = true;
  int64_t size = 0;
};

IndexReading index_reading(const KernelCall& call, int64_t size);

/// Indices as positions along their axis.
template <typename Index>
struct Indices {
  const Index* values;
  int64_t size;
  int64_t behind;  // how far before 0 they may lie: the size, or 0

  bool within(int64_t begin, int64_t end) const { return all_within(values + begin, end - begin, -behind, size - 1); }
  int64_t operator[](int64_t k) const {
    const int64_t at = values[k];
    return at < 0 ? at + behind : at;
  }
};

/// f(Indices) of the reading.
template <typename F>
void visit_indices(const IndexReading& reading, const std::byte* bytes, const F& f) {
  const int64_t behind = reading.from_end ? reading.size : 0;
  reading.wide ? f(Indices<int64_t>{reinterpret_cast<const int64_t*>(bytes), reading.size, behind})
               : f(Indices<int32_t>{reinterpret_cast<const int32_t*>(bytes), reading.size, behind});
}

/// f(k) of begin <= k < end, four in a round: as short a loop alone takes twice as long where its code lies across two
/// lines of the cache.
template <typename F>
void each_index(int64_t begin, int64_t end, const F& f) {
  int64_t k = begin;
  for (; k + 4 <= end; k += 4) {
    f(k);
    f(k + 1);
    f(k + 2);
    f(k + 3);
  }
  for (; k < end; ++k) f(k);
}

/// Tensors seen as [outer, along the axis, inner]: `size` elements of x along it, `count` of what is picked or put.
struct AxisSplit {
  int64_t outer = 1, size = 1, count = 1, inner = 1;
};

/// Of x and of what is picked from or put into it along param axis.
AxisSplit axis_split(const KernelCall& call, const TensorView& x, const TensorView& part);

inline bool is_index(DType dtype) { return dtype == DType::i64 || dtype == DType::i32; }

/// Whether there is such a split: they differ along that axis alone, all is plain, and the indices are i64 or i32.
Refusal serves_along_axis(std::string_view kernel, const KernelCall& call, const TensorView& x, const TensorView& part);

}  // namespace hetnn::kernels
