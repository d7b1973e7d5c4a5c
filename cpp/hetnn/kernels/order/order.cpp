// sort and topk: what their meanings do, on every thread.
#include "hetnn/kernels/order/order.h"

#include <algorithm>
#include <limits>

#include "hetnn/base/error.h"
#include "hetnn/kernels/row_view.h"
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

std::unique_ptr<Kernel> make(std::string_view op, const KernelCall& call, ops::Ordering ordering) {
  const TensorView &x = call.inputs[0], &values = call.outputs[0], &indices = call.outputs[1];
  for (const TensorView* view : {&x, &values, &indices}) {
    if (view->layout != Layout::plain)
      throw Unsupported(text(op, " reads and writes plain tensors; got ", view_text(*view), ". Insert a copy."));
  }
  if (values.dtype != x.dtype || indices.dtype != DType::i64 || !std::ranges::equal(values.shape(), indices.shape()))
    throw InvalidModel(text(op, ": values must be of x's type, and indices i64 of their shape; got ", view_text(values),
                            " and ", view_text(indices), ". Infer the outputs' types."));
  if (ordering.lanes.size >= std::numeric_limits<uint32_t>::max())
    throw Unsupported(text(op, " orders lanes of at most 2^32 - 2 elements; got ", ordering.lanes.size, "."));
  if (ordering.kept < 0 || ordering.kept > ordering.lanes.size)
    throw InvalidModel(text(op, ": ", ordering.kept, " of ", ordering.lanes.size, " elements. Check k."));
  if (x.dtype == DType::f32) return std::make_unique<OrderLanes<float>>(ordering);
  if (x.dtype == DType::i64) return std::make_unique<OrderLanes<int64_t>>(ordering);
  throw Unsupported(text(op, " orders f32 and i64; got ", dtype_name(x.dtype), ". Its meaning orders the rest."));
}

void check_counts(std::string_view op, const KernelCall& call) {
  if (call.inputs.size() != 1 || call.outputs.size() != 2)
    throw InvalidModel(text(op, " takes one input and gives two outputs; got ", call.inputs.size(), " and ",
                            call.outputs.size(), ". Check the call."));
}

ops::Lanes lanes_of(std::string_view op, const KernelCall& call, const TensorView& view) {
  const size_t axis = checked_axis(op, call.params.integer("axis", -1), std::max(view.rank, 1));
  return {view.shape(), static_cast<int>(axis)};
}

}  // namespace

std::unique_ptr<Kernel> make_sort(const KernelCall& call) {
  check_counts("sort", call);
  const TensorView& x = call.inputs[0];
  const ops::Lanes lanes = lanes_of("sort", call, x);
  const bool descending = call.params.integer("descending", 0) != 0;
  const bool stable = call.params.integer("stable", 1) != 0 || ops::is_sorted_by_digits(x.dtype, x.shape(), descending);
  return make("sort", call, {lanes, lanes.size, descending, false, stable});
}

std::unique_ptr<Kernel> make_topk(const KernelCall& call) {
  check_counts("topk", call);
  const int64_t kept = lanes_of("topk", call, call.outputs[0]).size;
  const bool largest = call.params.integer("largest", 1) != 0, sorted = call.params.integer("sorted", 1) != 0;
  return make("topk", call, {lanes_of("topk", call, call.inputs[0]), kept, largest, true, sorted});
}

std::span<const Variant> order_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "sort", .op = "sort", .speed = "reduce", .create = make_sort, .layout = LayoutWish::plain},
      {.name = "topk", .op = "topk", .speed = "reduce", .create = make_topk, .layout = LayoutWish::plain},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
