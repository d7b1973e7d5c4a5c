// The result in scratch, then its conversion.
#include "hetnn/kernels/narrowed.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "hetnn/kernels/quant/quant.h"

namespace hetnn::kernels {
namespace {

class Narrowed final : public Kernel {
 public:
  Narrowed(std::unique_ptr<Kernel> inner, std::unique_ptr<Kernel> convert, int64_t result_bytes, size_t outputs)
      : inner_(std::move(inner)),
        convert_(std::move(convert)),
        result_bytes_((result_bytes + 63) / 64 * 64),
        outputs_(outputs) {}

  int64_t scratch_bytes(int threads) const override { return result_bytes_ + inner_->scratch_bytes(threads); }
  bool serial() const override { return inner_->serial() && convert_->serial(); }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    constexpr size_t kMost = 8;
    std::byte* made[kMost];
    std::copy_n(outputs, outputs_, made);
    const std::byte* result = made[0] = context.scratch;
    const RunContext inside{context.thread, context.threads, context.barrier, context.scratch + result_bytes_,
                            context.refused};
    if (!inner_->serial()) {
      inner_->run(inside, inputs, made);
    } else if (context.thread == 0) {
      SpinBarrier alone(1);
      inner_->run({0, 1, alone, inside.scratch, context.refused}, inputs, made);
    }
    context.barrier.arrive_and_wait();
    convert_->run(context, &result, outputs);
  }

 private:
  std::unique_ptr<Kernel> inner_, convert_;
  int64_t result_bytes_;
  size_t outputs_;
};

}  // namespace

std::unique_ptr<Kernel> make_narrowed(const Variant& variant, const KernelCall& call, const TensorView& written) {
  std::unique_ptr<Kernel> convert = make_cast({call.outputs.first(1), {&written, 1}, call.params});
  return std::make_unique<Narrowed>(make_kernel(variant, call), std::move(convert), call.outputs[0].span_bytes(),
                                    call.outputs.size());
}

}  // namespace hetnn::kernels
