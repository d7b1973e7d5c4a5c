// matmul: both operands given at run time; the right one is packed into panels on the way.
#include <algorithm>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/gemm/gemm.h"
#include "hetnn/kernels/gemm/matmul_geometry.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

class Matmul final : public Kernel {
 public:
  Matmul(const KernelCall& call, MatmulGeometry geometry)
      : g_(std::move(geometry)), product_(shape(g_), EpiloguePlan(call, call.outputs[0])) {}

  // Matrices are dealt out whole when there are enough of them; otherwise all threads work on each, from one slot.
  int64_t scratch_bytes(int threads) const override {
    const int64_t slots = std::clamp<int64_t>(batch() / 2, 1, threads);
    return slots * packed_and_left_bytes() + threads * product_.scratch_bytes_per_thread();
  }

  bool serial() const override { return batch() * g_.m * g_.n * g_.k < 32768; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    if (batch() >= 2 * context.threads || context.threads == 1) {
      const Share share = share_of(batch(), context.thread, context.threads);
      std::byte* slot =
          context.scratch + context.thread * (packed_and_left_bytes() + product_.scratch_bytes_per_thread());
      for (int64_t i = share.begin; i < share.end; ++i) {
        pack(i, 0, 1, inputs, slot);
        multiply(i, 0, 1, inputs, outputs, slot, slot + packed_and_left_bytes());
      }
      return;
    }
    std::byte* own = context.scratch + packed_and_left_bytes() + context.thread * product_.scratch_bytes_per_thread();
    for (int64_t i = 0; i < batch(); ++i) {
      if (i > 0) context.barrier.arrive_and_wait();
      pack(i, context.thread, context.threads, inputs, context.scratch);
      context.barrier.arrive_and_wait();
      multiply(i, context.thread, context.threads, inputs, outputs, context.scratch, own);
    }
  }

 private:
  static PanelShape shape(const MatmulGeometry& g) {
    PanelShape s;
    s.rows = g.m;
    s.k = g.k;
    s.cols = g.n;
    s.a_bytes = g.m * g.k * 4;
    return s;
  }

  int64_t batch() const { return static_cast<int64_t>(g_.a_offsets.size()); }
  int64_t packed_bytes() const { return aligned(product_.shape().packed_bytes()); }
  int64_t left_bytes() const { return g_.transpose_a ? aligned(g_.m * g_.k * 4) : 0; }
  int64_t packed_and_left_bytes() const { return packed_bytes() + left_bytes(); }

  // Slot: packed right operand, then the left one turned to rows if it is stored in columns. Behind it, or behind the
  // one of all threads, lies the product's own scratch.
  void pack(int64_t i, int thread, int threads, const std::byte* const* inputs, std::byte* slot) const {
    const float* b = reinterpret_cast<const float*>(inputs[1]) + g_.b_offsets[static_cast<size_t>(i)];
    const Share panels = share_of(product_.shape().panels_per_group(), thread, threads);
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      float* to = reinterpret_cast<float*>(slot) + panel * g_.k * kPanel;
      const int64_t cols = std::min(kPanel, g_.n - panel * kPanel);
      if (cols < kPanel) std::fill_n(to, g_.k * kPanel, 0.0f);
      if (g_.transpose_b) {
        for (int64_t c = 0; c < cols; ++c) {
          const float* from = b + (panel * kPanel + c) * g_.k;
          for (int64_t k = 0; k < g_.k; ++k) to[k * kPanel + c] = from[k];
        }
      } else {
        for (int64_t k = 0; k < g_.k; ++k) std::copy_n(b + k * g_.n + panel * kPanel, cols, to + k * kPanel);
      }
    }
    if (!g_.transpose_a) return;
    const float* a = reinterpret_cast<const float*>(inputs[0]) + g_.a_offsets[static_cast<size_t>(i)];
    float* rows_of_a = reinterpret_cast<float*>(slot + packed_bytes());
    const Share rows = share_of(g_.m, thread, threads);
    for (int64_t row = rows.begin; row < rows.end; ++row)
      for (int64_t k = 0; k < g_.k; ++k) rows_of_a[row * g_.k + k] = a[k * g_.m + row];
  }

  void multiply(int64_t i, int thread, int threads, const std::byte* const* inputs, std::byte* const* outputs,
                const std::byte* slot, std::byte* own) const {
    const std::byte* a = g_.transpose_a ? slot + packed_bytes() : inputs[0] + g_.a_offsets[static_cast<size_t>(i)] * 4;
    const DenseRows rows(a, g_.k * 4);
    const RegisterPart& registers = product_.register_part();
    PanelRun run;
    run.source = &rows;
    run.panels = reinterpret_cast<const float*>(slot);
    if (registers.addend_input >= 0)
      run.addend = reinterpret_cast<const float*>(inputs[registers.addend_input]) + i * g_.m * registers.addend_pitch;
    run.ld_addend = registers.addend_pitch;
    run.out = reinterpret_cast<float*>(outputs[0]) + i * g_.m * g_.n;
    run.ld_out = g_.n;
    run.first_row = i * g_.m;
    run.inputs = inputs;
    product_.run(run, thread, threads, own);
  }

  MatmulGeometry g_;
  PanelProduct product_;
};

/// Other element types: plain loops, one row of the output at a time.
template <typename T>
class PlainMatmul final : public Kernel {
 public:
  explicit PlainMatmul(MatmulGeometry geometry) : g_(std::move(geometry)) {}

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* a = reinterpret_cast<const T*>(inputs[0]);
    const auto* b = reinterpret_cast<const T*>(inputs[1]);
    auto* y = reinterpret_cast<T*>(outputs[0]);
    const Share share = share_of(static_cast<int64_t>(g_.a_offsets.size()) * g_.m, context.thread, context.threads);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const auto matrix = static_cast<size_t>(row / g_.m);
      const int64_t i = row % g_.m;
      const T* left = a + g_.a_offsets[matrix];
      const T* right = b + g_.b_offsets[matrix];
      for (int64_t j = 0; j < g_.n; ++j) {
        T sum{};
        for (int64_t k = 0; k < g_.k; ++k)
          sum = static_cast<T>(sum + left[g_.transpose_a ? k * g_.m + i : i * g_.k + k] *
                                         right[g_.transpose_b ? j * g_.k + k : k * g_.n + j]);
        y[row * g_.n + j] = sum;
      }
    }
  }

 private:
  MatmulGeometry g_;
};

}  // namespace

Refusal serves_matmul(const KernelCall& call) {
  const DType dtype = call.inputs[0].dtype;
  const bool is_plain_loop = dtype == DType::f64 || dtype == DType::i64 || dtype == DType::i32;
  return Terms("matmul", call)
      .hold(serves_matrices("matmul", call))
      .hold(dtype == DType::f32 || is_plain_loop, "takes f32, f64, i64 and i32; got ", dtype_name(dtype))
      .hold(dtype == DType::f32 || call.steps.empty(), "takes steps behind f32; got ", dtype_name(dtype))
      .then([&] { return Terms("matmul", call).steps_on_rows(); });
}

std::unique_ptr<Kernel> make_matmul(const KernelCall& call) {
  MatmulGeometry g = matmul_geometry(call);
  const DType dtype = call.inputs[0].dtype;
  if (dtype == DType::f32) return std::make_unique<Matmul>(call, std::move(g));
  switch (dtype) {
    case DType::f64:
      return std::make_unique<PlainMatmul<double>>(std::move(g));
    case DType::i64:
      return std::make_unique<PlainMatmul<int64_t>>(std::move(g));
    default:
      HETNN_ASSERT(dtype == DType::i32, dtype_name(dtype));
      return std::make_unique<PlainMatmul<int32_t>>(std::move(g));
  }
}

}  // namespace hetnn::kernels
