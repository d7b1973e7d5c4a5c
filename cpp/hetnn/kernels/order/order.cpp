// sort and topk: what their meanings do, on every thread.
#include "hetnn/kernels/order/order.h"

#include <algorithm>
#include <limits>

#include "hetnn/base/error.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/ops/order/lane_order.h"
#include "hetnn/ops/order/order.h"

namespace hetnn::kernels {
namespace {

template <typename T>
class OrderLanes final : public Kernel {
 public:
  explicit OrderLanes(const ops::Ordering& ordering) : ordering_(ordering) {}

  int64_t scratch_bytes(int threads) const override { return threads * bytes(); }
  bool serial() const override { return ordering_.lanes.count() * ordering_.lanes.size < 4096; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    if (ordering_.kept == 0) return;
    const Share share = share_of(ordering_.lanes.count(), context.thread, context.threads);
    ops::order_lanes(ordering_, share.begin, share.end, reinterpret_cast<const T*>(inputs[0]),
                     reinterpret_cast<T*>(outputs[0]), reinterpret_cast<int64_t*>(outputs[1]),
                     context.scratch + context.thread * bytes());
  }

 private:
  // Whole lines of the cache for each thread.
  int64_t bytes() const { return (ops::LaneOrder<T>::bytes(ordering_.lanes.size) + 63) / 64 * 64; }

  ops::Ordering ordering_;
};

Refusal serves(std::string_view name, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const int64_t size = x.rank == 0 ? 1 : x.dims[checked_axis(name, call.params.integer("axis", -1), x.rank)];
  return Terms(name, call)
      .plain()
      .hold(x.dtype == DType::f32 || x.dtype == DType::i64, "orders f32 and i64; got ", dtype_name(x.dtype))
      .hold(size < std::numeric_limits<uint32_t>::max(), "orders lanes of at most 2^32 - 2 elements; got ", size);
}

std::unique_ptr<Kernel> make(const KernelCall& call, const ops::Ordering& ordering) {
  if (call.inputs[0].dtype == DType::f32) return std::make_unique<OrderLanes<float>>(ordering);
  return std::make_unique<OrderLanes<int64_t>>(ordering);
}

ops::Lanes lanes_of(std::string_view op, const KernelCall& call, const TensorView& view) {
  const size_t axis = checked_axis(op, call.params.integer("axis", -1), std::max(view.rank, 1));
  return {view.shape(), static_cast<int>(axis)};
}

}  // namespace

Refusal serves_sort(const KernelCall& call) { return serves("sort", call); }
Refusal serves_topk(const KernelCall& call) { return serves("topk", call); }

std::unique_ptr<Kernel> make_sort(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const ops::Lanes lanes = lanes_of("sort", call, x);
  const bool descending = call.params.integer("descending", 0) != 0;
  const bool stable = call.params.integer("stable", 1) != 0 || ops::is_sorted_by_digits(x.dtype, x.shape(), descending);
  return make(call, {lanes, lanes.size, descending, false, stable});
}

std::unique_ptr<Kernel> make_topk(const KernelCall& call) {
  const int64_t kept = lanes_of("topk", call, call.outputs[0]).size;
  const bool largest = call.params.integer("largest", 1) != 0, sorted = call.params.integer("sorted", 1) != 0;
  return make(call, {lanes_of("topk", call, call.inputs[0]), kept, largest, true, sorted});
}

std::span<const Variant> order_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "sort",
       .op = "sort",
       .speed = "reduce",
       .serves = serves_sort,
       .create = make_sort,
       .layout = LayoutWish::plain},
      {.name = "topk",
       .op = "topk",
       .speed = "reduce",
       .serves = serves_topk,
       .create = make_topk,
       .layout = LayoutWish::plain},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
