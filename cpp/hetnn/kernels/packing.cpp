// Packs weights, and wraps kernels whose weights come with the run.
#include "hetnn/kernels/packing.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hetnn/base/error.h"

namespace hetnn::kernels {
namespace {

// Bytes that one thread packs before it asks for more.
constexpr int64_t kAtOnce_bytes = 1 << 19;

struct Given {
  size_t input;
  std::unique_ptr<const Packer> packer;
  int64_t offset_bytes;  // in scratch
};

class PackedInRun final : public Kernel {
 public:
  PackedInRun(std::unique_ptr<Kernel> inner, std::vector<Given> weights, int64_t packed_bytes, size_t input_count)
      : inner_(std::move(inner)),
        weights_(std::move(weights)),
        packed_bytes_(packed_bytes),
        input_count_(input_count) {}

  int64_t scratch_bytes(int threads) const override { return packed_bytes_ + inner_->scratch_bytes(threads); }
  bool serial() const override { return inner_->serial(); }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    std::array<const std::byte*, kMostPassedInputs> in;
    std::copy_n(inputs, input_count_, in.begin());
    for (const Given& weight : weights_) {
      std::byte* packed = context.scratch + weight.offset_bytes;
      weight.packer->pack(share_of(weight.packer->parts(), context.thread, context.threads), inputs[weight.input],
                          packed);
      in[weight.input] = packed;
    }
    context.barrier.arrive_and_wait();
    inner_->run({context.thread, context.threads, context.barrier, context.scratch + packed_bytes_, context.refused},
                in.data(), outputs);
  }

 private:
  std::unique_ptr<Kernel> inner_;
  std::vector<Given> weights_;
  int64_t packed_bytes_;
  size_t input_count_;
};

}  // namespace

PackedCall::PackedCall(const Variant& variant, const KernelCall& call)
    : call_(call), inputs_(call.inputs.begin(), call.inputs.end()) {
  if (!variant.packer) return;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (inputs_[k].packed || !variant.is_weight(call, static_cast<int>(k))) continue;
    given_.push_back(static_cast<int>(k));
    inputs_[k] = TensorView::of_weight(inputs_[k].dtype, call.inputs[k].shape());
  }
}

std::unique_ptr<Kernel> with_packing(const Variant& variant, const KernelCall& call) {
  const PackedCall packed(variant, call);
  if (packed.given().empty()) return variant.create(call);
  HETNN_ASSERT(call.inputs.size() <= kMostPassedInputs, call.inputs.size(), " inputs");
  std::vector<Given> weights;
  int64_t offset = 0;
  for (const int input : packed.given()) {
    weights.push_back({static_cast<size_t>(input), variant.packer(packed.call(), input), offset});
    offset += (weights.back().packer->packed_bytes() + 63) / 64 * 64;
  }
  return std::make_unique<PackedInRun>(variant.create(packed.call()), std::move(weights), offset, call.inputs.size());
}

std::vector<std::byte> packed_by(const Packer& packer, std::span<const std::byte> weight) {
  std::vector<std::byte> packed(static_cast<size_t>(packer.packed_bytes()));
  const int64_t parts = packer.parts();
  if (parts == 0) return packed;
  // Few numbers are packed before another thread has woken.
  const int64_t at_once = std::max<int64_t>(1, kAtOnce_bytes / std::max<int64_t>(1, packer.packed_bytes() / parts));
  parallel_each((parts + at_once - 1) / at_once, [&](int64_t k) {
    packer.pack({k * at_once, std::min(parts, (k + 1) * at_once)}, weight.data(), packed.data());
  });
  return packed;
}

}  // namespace hetnn::kernels
