// matmul of two quantized i8 given at run time; the right one is packed into panels on the way.
#include <algorithm>
#include <cstring>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/gemm/gemm.h"
#include "hetnn/kernels/gemm/integer_product.h"
#include "hetnn/kernels/gemm/matmul_geometry.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

constexpr ProductOperands kOperands = {"a", "b"};

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

PanelShape shape_of(const MatmulGeometry& g) {
  PanelShape s;
  s.rows = g.m;
  s.k = g.k;
  s.cols = g.n;
  s.a_bytes = g.m * g.k;
  s.elem_bytes = 1;
  return s;
}

class IntegerMatmul final : public Kernel {
 public:
  IntegerMatmul(const KernelCall& call, MatmulGeometry geometry)
      : g_(std::move(geometry)), product_(shape_of(g_), call, kOperands), scales_(call, kOperands) {}

  int64_t scratch_bytes(int threads) const override { return threads * slot_bytes(); }
  bool serial() const override { return batch() * g_.m * g_.n * g_.k < 32768; }

  // Matrices are dealt out whole when there are enough of them; otherwise all threads work on each.
  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    std::byte* const own = context.scratch + context.thread * slot_bytes();
    if (batch() >= 2 * context.threads || context.threads == 1) {
      const Share share = share_of(batch(), context.thread, context.threads);
      for (int64_t i = share.begin; i < share.end; ++i) {
        pack(i, 0, 1, inputs, own);
        multiply(i, 0, 1, inputs, outputs, own, own);
      }
      return;
    }
    for (int64_t i = 0; i < batch(); ++i) {
      if (i > 0) context.barrier.arrive_and_wait();
      pack(i, context.thread, context.threads, inputs, context.scratch);
      context.barrier.arrive_and_wait();
      multiply(i, context.thread, context.threads, inputs, outputs, context.scratch, own);
    }
  }

 private:
  int64_t batch() const { return static_cast<int64_t>(g_.a_offsets.size()); }
  int64_t packed_bytes() const { return aligned(IntegerProduct::packed_bytes(product_.shape(), 1)); }
  int64_t left_bytes() const { return g_.transpose_a ? aligned(g_.m * g_.k) : 0; }
  // Packed right operand, left operand turned to rows if it is stored in columns, then the product's own scratch.
  int64_t slot_bytes() const { return packed_bytes() + left_bytes() + product_.scratch_bytes_per_thread(); }

  void pack(int64_t i, int thread, int threads, const std::byte* const* inputs, std::byte* slot) const {
    const auto at = static_cast<size_t>(i);
    const PackStrides strides = g_.transpose_b ? PackStrides{0, g_.k, 0, 1} : PackStrides{0, 1, 0, g_.n};
    const Share panels = share_of(product_.shape().panels_per_group(), thread, threads);
    IntegerProduct::pack_share(product_.shape(), panels, scales_,
                               reinterpret_cast<const int8_t*>(inputs[1]) + g_.b_offsets[at], strides, slot);
    if (!g_.transpose_a) return;
    const std::byte* a = inputs[0] + g_.a_offsets[at];
    std::byte* rows_of_a = slot + packed_bytes();
    const Share rows = share_of(g_.m, thread, threads);
    for (int64_t row = rows.begin; row < rows.end; ++row)
      for (int64_t k = 0; k < g_.k; ++k) rows_of_a[row * g_.k + k] = a[k * g_.m + row];
  }

  void multiply(int64_t i, int thread, int threads, const std::byte* const* inputs, std::byte* const* outputs,
                const std::byte* slot, std::byte* own) const {
    const DenseRows rows(g_.transpose_a ? slot + packed_bytes() : inputs[0] + g_.a_offsets[static_cast<size_t>(i)],
                         g_.k);
    IntegerRun run = product_.run_on(inputs, slot, nullptr, outputs[0] + i * g_.m * g_.n, g_.n);
    run.source = &rows;
    product_.run(run, thread, threads, own + packed_bytes() + left_bytes());
  }

  MatmulGeometry g_;
  IntegerProduct product_;
  LayerScales scales_;
};

}  // namespace

Refusal serves_integer_matmul(const KernelCall& call) {
  const auto is_sum = [](const Step& step) { return step.function == kSumOfI8; };
  return Terms("matmul_i8", call)
      .hold(serves_matrices("matmul_i8", call))
      .of(DType::i8, 2)
      .then([&] { return IntegerProduct::serves(shape_of(matmul_geometry(call)), call, kOperands); })
      .then([&]() -> Refusal {
        if (call.params.reals("b.scales").size() == 1) return std::nullopt;
        return "matmul_i8 takes one scale for all of b.";
      })
      .hold(std::ranges::none_of(call.steps, is_sum), "takes no sum behind it");
}

std::unique_ptr<Kernel> make_integer_matmul(const KernelCall& call) {
  return std::make_unique<IntegerMatmul>(call, matmul_geometry(call));
}

}  // namespace hetnn::kernels
