// What kernels share that address elements along an axis by indices.
#pragma once

#include <string_view>

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// An index that was checked: negative ones count from the end.
inline int64_t position(int64_t index, int64_t size) { return index < 0 ? index + size : index; }

/// Tensors seen as [outer, along the axis, inner]: `size` elements of x along it, `count` of what is picked or put.
struct AxisSplit {
  int64_t outer = 1, size = 1, count = 1, inner = 1;
};

/// Of x and of what is picked from or put into it along param axis. Throws Unsupported where they differ along another
/// axis, or are not plain, or the indices neither i64 nor i32; InvalidModel for an axis that is not there.
AxisSplit axis_split(std::string_view op, const KernelCall& call, const TensorView& x, const TensorView& part);

}  // namespace hetnn::kernels
