// A kernel with its packed weights and its scratch.
#include "hetnn/kernels/lone_kernel.h"

#include <algorithm>
#include <atomic>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/refusal.h"

namespace hetnn::kernels {
namespace {

AlignedBuffer aligned(std::span<const std::byte> bytes) {
  AlignedBuffer out(bytes.size());
  std::ranges::copy(bytes, out.data());
  return out;
}

class LoneKernel final : public ops::FastCall {
 public:
  /// Throws Unsupported or InvalidModel for a call that the variant does not take.
  LoneKernel(const Variant& variant, const ops::Call& call, std::span<const ops::View> constants) : call_(call) {
    std::vector<TensorView> inputs, outputs;
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      if (!call.has(k)) continue;
      present_.push_back(k);
      inputs.push_back(view_of(call.input(k)));
    }
    for (const ops::Type* type : call.outputs) outputs.push_back(view_of(*type));
    Params params = params_of(call);
    const KernelCall unpacked{inputs, outputs, params};
    if (variant.choose) params.set(variant.choose(unpacked));
    std::vector<TensorView> packed = inputs;
    packed_.resize(inputs.size());
    for (size_t k = 0; variant.is_weight && k < inputs.size(); ++k) {
      if (!variant.is_weight(unpacked, static_cast<int>(k))) continue;
      const ops::View& weight = constants[present_[k]];
      if (!weight.data) throw Unsupported("a weight that is computed");
      packed_[k] = aligned(
          variant.pack(unpacked, static_cast<int>(k), {weight.data, static_cast<size_t>(inputs[k].span_bytes())}));
      packed[k] = TensorView::of_weight(inputs[k].dtype, inputs[k].shape());
    }
    kernel_ = variant.create({packed, outputs, params});
    scratch_ = AlignedBuffer(static_cast<size_t>(kernel_->scratch_bytes(1)));
    pointers_.resize(inputs.size());
  }

  void run(std::span<const ops::View> inputs, std::span<std::byte* const> outputs) override {
    for (size_t k = 0; k < present_.size(); ++k)
      pointers_[k] = packed_[k].size_bytes() > 0 ? packed_[k].data() : inputs[present_[k]].data;
    SpinBarrier alone(1);
    std::atomic<bool> refused = false;
    kernel_->run({0, 1, alone, scratch_.data(), &refused}, pointers_.data(), outputs.data());
    if (refused) tell_refused(call_, inputs);
  }

 private:
  static TensorView view_of(const ops::Type& type) {
    if (type.quant) throw Unsupported("a value that kernels alone do not read");
    return TensorView::plain(type.dtype, hetnn::values(type.shape));
  }

  const ops::Call& call_;
  std::vector<size_t> present_;        // which of the call's inputs the kernel's are
  std::vector<AlignedBuffer> packed_;  // of each of these: its packed bytes, or none
  std::vector<const std::byte*> pointers_;
  std::unique_ptr<Kernel> kernel_;
  AlignedBuffer scratch_;
};

}  // namespace

std::unique_ptr<ops::FastCall> LoneKernels::make(const ops::Call& call, std::span<const ops::View> constants) const {
  const Variant* variant = variant_of(call);
  if (!variant) return nullptr;
  try {
    return std::make_unique<LoneKernel>(*variant, call, constants);
  } catch (const Unsupported&) {
    return nullptr;
  } catch (const InvalidModel&) {
    return nullptr;  // the operator takes the call, or there would be none
  }
}

}  // namespace hetnn::kernels
