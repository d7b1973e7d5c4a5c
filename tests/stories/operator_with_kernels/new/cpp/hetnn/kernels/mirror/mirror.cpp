// The operator mirror, for f32 in plain memory.
#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/kernel.h"

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

std::unique_ptr<Kernel> make_mirror(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (x.dtype != DType::f32 || x.layout != Layout::plain || y.layout != Layout::plain)
    throw Unsupported("mirror takes plain f32 tensors. Cast or copy them.");
  return std::make_unique<Mirror>(x.elems());
}

constexpr Variant kVariants[] = {
    {.name = "mirror", .op = "mirror", .speed = "move", .create = make_mirror, .layout = LayoutWish::plain}};

}  // namespace

std::span<const Variant> mirror_variants();
std::span<const Variant> mirror_variants() { return kVariants; }

}  // namespace hetnn::kernels
