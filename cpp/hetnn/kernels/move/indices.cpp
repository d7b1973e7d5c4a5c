// Tensors split at an axis; comparing indices with their bounds, vectorized.
#include "hetnn/kernels/move/indices.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/row_view.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/move/indices.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// A number is within the bounds where neither distance from them is negative.
bool AllWithin(const int64_t* numbers, int64_t count, int64_t least, int64_t most) {
  const hn::ScalableTag<int64_t> d;
  const auto low = hn::Set(d, least), high = hn::Set(d, most);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto signs = hn::Zero(d);
  int64_t k = 0;
  for (; k + lanes <= count; k += lanes) {
    const auto v = hn::LoadU(d, numbers + k);
    signs = hn::Or(signs, hn::Or(hn::Sub(v, low), hn::Sub(high, v)));
  }
  uint64_t rest = 0;
  for (; k < count; ++k) {
    const auto v = static_cast<uint64_t>(numbers[k]);
    rest |= (v - static_cast<uint64_t>(least)) | (static_cast<uint64_t>(most) - v);
  }
  return static_cast<int64_t>(rest) >= 0 && hn::AllFalse(d, hn::Lt(signs, hn::Zero(d)));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {

bool all_within(const int64_t* numbers, int64_t count, int64_t least, int64_t most) {
  return HETNN_CHOSEN(AllWithin)(numbers, count, least, most);
}

bool all_within(const int32_t* numbers, int64_t count, int64_t least, int64_t most) {
  return std::all_of(numbers, numbers + count, [&](int64_t at) { return at >= least && at <= most; });
}

IndexReading index_reading(const KernelCall& call, int64_t size) {
  return {call.inputs[1].dtype == DType::i64, call.params.integer("from_end", 1) != 0, size};
}

Refusal serves_along_axis(std::string_view kernel, const KernelCall& call, const TensorView& x,
                          const TensorView& part) {
  const DType index = call.inputs[1].dtype;
  Terms terms(kernel, call);
  terms.plain()
      .hold(is_index(index), "takes indices of i64 and i32; got ", dtype_name(index))
      .hold(x.rank == part.rank, "takes operands of one rank; got ", view_text(x), " and ", view_text(part));
  if (!terms.met() || x.rank == 0) return terms;
  const size_t axis = checked_axis(kernel, call.params.integer("axis", 0), x.rank);
  for (size_t k = 0; k < x.shape().size(); ++k)
    terms.hold(k == axis || x.dims[k] == part.dims[k], "takes operands that differ along its axis alone; got ",
               view_text(x), " and ", view_text(part));
  return terms;
}

AxisSplit axis_split(const KernelCall& call, const TensorView& x, const TensorView& part) {
  const size_t axis = checked_axis("a split", call.params.integer("axis", 0), std::max(x.rank, 1));
  AxisSplit out;
  for (size_t k = 0; k < x.shape().size(); ++k) {
    if (k == axis) {
      out.size = x.dims[k];
      out.count = part.dims[k];
    } else {
      (k < axis ? out.outer : out.inner) *= x.dims[k];
    }
  }
  return out;
}

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
