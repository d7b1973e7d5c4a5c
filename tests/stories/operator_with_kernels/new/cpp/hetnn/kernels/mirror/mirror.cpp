// The operator mirror, for f32 in plain memory.
#include "hetnn/kernels/mirror/mirror.h"

#include <algorithm>

#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

class Mirror final : public Kernel {
 public:
  explicit Mirror(int64_t elems) : elems_(elems) {}
  bool serial() const override { return true; }
  void run(const RunContext&, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    std::reverse_copy(x, x + elems_, reinterpret_cast<float*>(outputs[0]));
  }

 private:
  int64_t elems_;
};

Refusal serves_mirror(const KernelCall& call) { return Terms("mirror", call).of(DType::f32, 1).plain(); }

std::unique_ptr<Kernel> make_mirror(const KernelCall& call) { return std::make_unique<Mirror>(call.inputs[0].elems()); }

constexpr Variant kVariants[] = {{.name = "mirror",
                                  .op = "mirror",
                                  .speed = "move",
                                  .serves = serves_mirror,
                                  .create = make_mirror,
                                  .layout = LayoutWish::plain}};

}  // namespace

std::span<const Variant> mirror_variants() { return kVariants; }

}  // namespace hetnn::kernels
