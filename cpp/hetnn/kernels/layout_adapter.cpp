// Copies between plain and nhwc, and kernels wrapped in such copies.
#include "hetnn/kernels/layout_adapter.h"

#include <algorithm>
#include <array>

#include "hetnn/base/error.h"
#include "hetnn/kernels/move/transpose.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

// Pixels of a share: whole squares of a transposition.
constexpr int64_t kBlock = 16;

struct Conversion {
  int operand = 0;
  RowView rows;
  int64_t batch = 1;
  int64_t elem_bytes = 4;
  int64_t offset_bytes = 0;  // in scratch
};

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

class AdaptedKernel final : public Kernel {
 public:
  AdaptedKernel(std::unique_ptr<Kernel> inner, std::vector<Conversion> inputs, std::vector<Conversion> outputs,
                size_t input_count, size_t output_count)
      : inner_(std::move(inner)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        input_count_(input_count),
        output_count_(output_count) {
    for (std::vector<Conversion>* side : {&inputs_, &outputs_}) {
      for (Conversion& conversion : *side) {
        conversion.offset_bytes = copies_bytes_;
        copies_bytes_ += aligned(conversion.rows.rows * conversion.rows.cols * conversion.elem_bytes);
      }
    }
  }

  int64_t scratch_bytes(int threads) const override { return copies_bytes_ + inner_->scratch_bytes(threads); }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    constexpr size_t kInline = 128;
    HETNN_ASSERT(input_count_ <= kInline && output_count_ <= kInline);
    std::array<const std::byte*, kInline> in;
    std::array<std::byte*, kInline> out;
    std::copy_n(inputs, input_count_, in.begin());
    std::copy_n(outputs, output_count_, out.begin());
    for (const Conversion& c : inputs_) {
      std::byte* copy = context.scratch + c.offset_bytes;
      visit_element(c, [&](auto zero) { to_nhwc<decltype(zero)>(c, inputs[c.operand], copy, context); });
      in[static_cast<size_t>(c.operand)] = copy;
    }
    for (const Conversion& c : outputs_) out[static_cast<size_t>(c.operand)] = context.scratch + c.offset_bytes;
    context.barrier.arrive_and_wait();
    const RunContext inner{context.thread, context.threads, context.barrier, context.scratch + copies_bytes_,
                           context.refused};
    if (!inner_->serial()) {
      inner_->run(inner, in.data(), out.data());
    } else if (context.thread == 0) {
      SpinBarrier alone(1);
      inner_->run({0, 1, alone, inner.scratch}, in.data(), out.data());
    }
    if (outputs_.empty()) return;
    context.barrier.arrive_and_wait();
    for (const Conversion& c : outputs_) {
      const std::byte* copy = context.scratch + c.offset_bytes;
      visit_element(c, [&](auto zero) { to_plain<decltype(zero)>(c, copy, outputs[c.operand], context); });
    }
  }

 private:
  template <typename F>
  static void visit_element(const Conversion& c, F f) {
    if (c.elem_bytes == 1) return f(int8_t{});
    if (c.elem_bytes == 2) return f(uint16_t{});
    f(float{});
  }
  template <typename T>
  static void to_nhwc(const Conversion& c, const std::byte* from, std::byte* to, const RunContext& context) {
    copy_plain_to_nhwc(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), c.batch, c.rows.cols,
                       c.rows.rows_per_batch, c.rows.cols, context.thread, context.threads);
  }
  template <typename T>
  static void to_plain(const Conversion& c, const std::byte* from, std::byte* to, const RunContext& context) {
    copy_nhwc_to_plain(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), c.batch, c.rows.cols,
                       c.rows.rows_per_batch, c.rows.cols, context.thread, context.threads);
  }

  std::unique_ptr<Kernel> inner_;
  std::vector<Conversion> inputs_, outputs_;
  size_t input_count_, output_count_;
  int64_t copies_bytes_ = 0;
};

}  // namespace

template <typename T>
void copy_plain_to_nhwc(const T* plain, T* nhwc, int64_t batch, int64_t channels, int64_t pixels, int64_t pitch,
                        int thread, int threads) {
  const Share share = share_of(batch * pixels, thread, threads, kBlock);
  for (int64_t row = share.begin; row < share.end;) {
    const int64_t n = row / pixels, pixel = row % pixels;
    const int64_t count = std::min(share.end - row, pixels - pixel);
    transpose(plain + n * channels * pixels + pixel, pixels, nhwc + row * pitch, pitch, channels, count);
    row += count;
  }
}

template <typename T>
void copy_nhwc_to_plain(const T* nhwc, T* plain, int64_t batch, int64_t channels, int64_t pixels, int64_t pitch,
                        int thread, int threads) {
  const Share share = share_of(batch * pixels, thread, threads, kBlock);
  for (int64_t row = share.begin; row < share.end;) {
    const int64_t n = row / pixels, pixel = row % pixels;
    const int64_t count = std::min(share.end - row, pixels - pixel);
    transpose(nhwc + row * pitch, pitch, plain + n * channels * pixels + pixel, pixels, count, channels);
    row += count;
  }
}

template void copy_plain_to_nhwc(const float*, float*, int64_t, int64_t, int64_t, int64_t, int, int);
template void copy_plain_to_nhwc(const int8_t*, int8_t*, int64_t, int64_t, int64_t, int64_t, int, int);
template void copy_plain_to_nhwc(const uint16_t*, uint16_t*, int64_t, int64_t, int64_t, int64_t, int, int);
template void copy_nhwc_to_plain(const float*, float*, int64_t, int64_t, int64_t, int64_t, int, int);
template void copy_nhwc_to_plain(const int8_t*, int8_t*, int64_t, int64_t, int64_t, int64_t, int, int);
template void copy_nhwc_to_plain(const uint16_t*, uint16_t*, int64_t, int64_t, int64_t, int64_t, int, int);

namespace {

// A call with its operands as nhwc, and what is copied for it.
struct NhwcCall {
  explicit NhwcCall(const KernelCall& call)
      : inputs(call.inputs.begin(), call.inputs.end()), outputs(call.outputs.begin(), call.outputs.end()) {
    const int rank = call.outputs[0].rank;
    if (rank < 3 || rank > 5) return;
    turn(inputs, in, rank);
    turn(outputs, out, rank);
  }

  std::vector<TensorView> inputs, outputs;
  std::vector<Conversion> in, out;

 private:
  static void turn(std::vector<TensorView>& views, std::vector<Conversion>& conversions, int rank) {
    for (size_t i = 0; i < views.size(); ++i) {
      TensorView& view = views[i];
      if (view.packed || view.layout == Layout::nhwc || view.rank != rank) continue;
      if (const std::optional<TensorView> same = as_nhwc(view)) {
        view = *same;
        continue;
      }
      view = TensorView::nhwc(view.dtype, view.shape());
      conversions.push_back({static_cast<int>(i), row_view(view), view.dims[0], dtype_bytes(view.dtype)});
    }
  }
};

bool can_turn(const Conversion& c) { return c.elem_bytes == 4 || c.elem_bytes == 2 || c.elem_bytes == 1; }

}  // namespace

Refusal serves_with_nhwc(const KernelCall& call, ServesFunction serves) {
  const NhwcCall turned(call);
  if (!std::ranges::all_of(turned.in, can_turn) || !std::ranges::all_of(turned.out, can_turn))
    return text("a plain ", dtype_name(call.inputs[0].dtype), " operand cannot be turned to nhwc on the fly.");
  return serves({turned.inputs, turned.outputs, call.params, call.steps});
}

std::unique_ptr<Kernel> make_with_nhwc(const KernelCall& call, KernelFactory create) {
  NhwcCall turned(call);
  std::unique_ptr<Kernel> inner = create({turned.inputs, turned.outputs, call.params, call.steps});
  if (turned.in.empty() && turned.out.empty()) return inner;
  return std::make_unique<AdaptedKernel>(std::move(inner), std::move(turned.in), std::move(turned.out),
                                         turned.inputs.size(), turned.outputs.size());
}

}  // namespace hetnn::kernels
