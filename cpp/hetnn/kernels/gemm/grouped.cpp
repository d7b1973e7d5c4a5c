// grouped_matmul: groups of rows, each times a packed matrix of its own.
#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/kernels/gemm/gemm.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

PanelShape weight_shape(const KernelCall& call) {
  const TensorView& weights = call.inputs[1];
  return {.k = weights.dims[1], .cols = weights.dims[2], .weights = weights.dtype};
}

// Of all groups in one; which rows belong to which comes with the run.
PanelShape geometry_of(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  PanelShape shape = weight_shape(call);
  shape.rows = x.dims[0];
  shape.a_bytes = x.elems() * 4;
  return shape;
}

class GroupedMatmul final : public Kernel {
 public:
  explicit GroupedMatmul(const KernelCall& call)
      : product_(geometry_of(call), EpiloguePlan(call, call.outputs[0])),
        groups_(call.inputs[1].dims[0]),
        wide_(call.inputs[2].dtype == DType::i64) {}

  int64_t scratch_bytes(int threads) const override { return threads * product_.scratch_bytes_per_thread(); }

  bool serial() const override { return product_.shape().is_small(); }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const PanelShape& s = product_.shape();
    const DenseRows rows(inputs[0], s.k * 4);
    PanelRun run = product_.run_on(inputs, inputs[1], nullptr, outputs[0], s.cols);
    run.source = &rows;
    std::byte* const scratch = context.scratch + context.thread * product_.scratch_bytes_per_thread();
    Share group{0, 0};
    for (int64_t k = 0; k < groups_; ++k, run.panels += s.packed_bytes() / 4) {
      group.end =
          wide_ ? reinterpret_cast<const int64_t*>(inputs[2])[k] : reinterpret_cast<const int32_t*>(inputs[2])[k];
      if (group.end < group.begin || group.end > s.rows) return context.refuse();
      product_.run_group(run, group, context.thread, context.threads, scratch);
      group.begin = group.end;
    }
    const Share rest = share_of(s.rows - group.end, context.thread, context.threads);
    std::fill_n(run.out + (group.end + rest.begin) * s.cols, (rest.end - rest.begin) * s.cols, 0.0f);
  }

 private:
  PanelProduct product_;
  int64_t groups_;
  bool wide_;
};

}  // namespace

Refusal serves_grouped_matmul(const KernelCall& call) {
  const DType weights = call.inputs[1].dtype, ends = call.inputs[2].dtype;
  return Terms("grouped_matmul", call)
      .of(DType::f32, 1)
      .plain()
      .hold(weights == DType::f32 || is_narrow_float(weights), "takes weights of f32, f16 and bf16; got ",
            dtype_name(weights))
      .hold(ends == DType::i64 || ends == DType::i32, "takes ends of i64 and i32; got ", dtype_name(ends));
}

std::unique_ptr<Kernel> make_grouped_matmul(const KernelCall& call) { return std::make_unique<GroupedMatmul>(call); }

int64_t packed_grouped_bytes(const KernelCall& call, int /*input*/) {
  return call.inputs[1].dims[0] * weight_shape(call).packed_bytes();
}

std::vector<std::byte> pack_grouped(const KernelCall& call, int input, std::span<const std::byte> weight) {
  const TensorView& view = call.inputs[1];
  const int64_t bytes = dtype_bytes(view.dtype);
  HETNN_ASSERT(input == 1 && static_cast<int64_t>(weight.size()) == view.elems() * bytes);
  const PanelShape shape = weight_shape(call);
  std::vector<std::byte> packed(static_cast<size_t>(packed_grouped_bytes(call, input)));
  const std::byte* from = weight.data();
  std::byte* to = packed.data();
  for (int64_t k = 0; k < view.dims[0]; ++k, from += shape.k * shape.cols * bytes, to += shape.packed_bytes())
    pack_float_panels(shape, from, {0, 1, 0, shape.cols}, to);
  return packed;
}

}  // namespace hetnn::kernels
