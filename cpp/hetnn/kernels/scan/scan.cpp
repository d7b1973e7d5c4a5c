// Scans of several lanes side by side: while one waits for its last sum, the others add.
#include "hetnn/kernels/scan/scan.h"

#include <algorithm>
#include <array>

#include "hetnn/base/error.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kSide = 8;

/// Lanes that begin `apart` from each other; their elements lie `step` apart.
template <bool kProduct, int64_t kLanes>
void scan(const float* x, float* y, int64_t apart, int64_t step, int64_t size, bool exclusive) {
  std::array<double, kLanes> so_far;
  so_far.fill(kProduct ? 1 : 0);
  for (int64_t k = 0; k < size; ++k, x += step, y += step) {
    std::array<double, kLanes> next;
    for (size_t j = 0; j < kLanes; ++j) {
      const auto value = static_cast<double>(x[static_cast<int64_t>(j) * apart]);
      next[j] = kProduct ? so_far[j] * value : so_far[j] + value;
    }
    const std::array<double, kLanes>& written = exclusive ? so_far : next;
    for (size_t j = 0; j < kLanes; ++j) y[static_cast<int64_t>(j) * apart] = static_cast<float>(written[j]);
    so_far = next;
  }
}

template <bool kProduct>
class Scan final : public Kernel {
 public:
  Scan(const KernelCall& call, size_t axis)
      : exclusive_(call.params.integer("exclusive", 0) != 0), reverse_(call.params.integer("reverse", 0) != 0) {
    const std::span<const int64_t> shape = call.inputs[0].shape();
    for (size_t k = 0; k < shape.size(); ++k) (k < axis ? outer_ : k == axis ? size_ : step_) *= shape[k];
  }

  bool serial() const override { return outer_ * size_ * step_ < 16384; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    if (size_ == 0) return;
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    auto* y = reinterpret_cast<float*>(outputs[0]);
    // Lanes that follow one another where the axis is the last, else those that lie side by side.
    const bool last = step_ == 1;
    const int64_t runs = last ? 1 : outer_, lanes = last ? outer_ : step_, apart = last ? size_ : 1;
    const int64_t blocks = (lanes + kSide - 1) / kSide, stride = reverse_ ? -step_ : step_;
    const Share share = share_of(runs * blocks, context.thread, context.threads);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t lane = item % blocks * kSide, count = std::min(kSide, lanes - lane);
      const int64_t at = item / blocks * size_ * step_ + lane * apart + (reverse_ ? (size_ - 1) * step_ : 0);
      if (count == kSide) {
        scan<kProduct, kSide>(x + at, y + at, apart, stride, size_, exclusive_);
        continue;
      }
      for (int64_t j = at; j < at + count * apart; j += apart)
        scan<kProduct, 1>(x + j, y + j, apart, stride, size_, exclusive_);
    }
  }

 private:
  bool exclusive_, reverse_;
  int64_t outer_ = 1, size_ = 1, step_ = 1;
};

template <bool kProduct>
std::unique_ptr<Kernel> make_scan(std::string_view op, const KernelCall& call) {
  return std::make_unique<Scan<kProduct>>(
      call, checked_axis(op, call.params.integer("axis", 0), std::max(call.inputs[0].rank, 1)));
}

}  // namespace

Refusal serves_cumsum(const KernelCall& call) { return Terms("cumsum", call).of(DType::f32, 1).plain(); }
Refusal serves_cumprod(const KernelCall& call) { return Terms("cumprod", call).of(DType::f32, 1).plain(); }

std::unique_ptr<Kernel> make_cumsum(const KernelCall& call) { return make_scan<false>("cumsum", call); }

std::unique_ptr<Kernel> make_cumprod(const KernelCall& call) { return make_scan<true>("cumprod", call); }

std::span<const Variant> scan_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "cumsum",
       .op = "cumsum",
       .speed = "reduce",
       .serves = serves_cumsum,
       .create = make_cumsum,
       .layout = LayoutWish::plain},
      {.name = "cumprod",
       .op = "cumprod",
       .speed = "reduce",
       .serves = serves_cumprod,
       .create = make_cumprod,
       .layout = LayoutWish::plain},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
