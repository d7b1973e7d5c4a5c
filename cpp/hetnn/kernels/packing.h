// Weights that a kernel reads packed: packed when compiling, or, where they are values, at the start of the kernel's
// run.
#pragma once

#include <vector>

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// The most inputs that a kernel passes on to another one.
inline constexpr size_t kMostPassedInputs = 128;

/// A call as the functions of a variant are asked: weights that its packer is given in the run count as packed. Reads
/// the call that it was made of.
class PackedCall {
 public:
  PackedCall(const Variant& variant, const KernelCall& call);
  KernelCall call() const { return {inputs_, call_.outputs, call_.params, call_.steps}; }
  /// Which inputs are weights that are not packed yet.
  const std::vector<int>& given() const { return given_; }

 private:
  const KernelCall call_;
  std::vector<TensorView> inputs_;
  std::vector<int> given_;
};

/// The kernel of a call that the variant serves; before it runs, all threads pack the weights that are given.
std::unique_ptr<Kernel> with_packing(const Variant& variant, const KernelCall& call);

/// A constant's bytes, packed by all processors.
std::vector<std::byte> packed_by(const Packer& packer, std::span<const std::byte> weight);

/// PackFunction and PackedBytes of a variant whose packer is made so.
template <PackerFactory kMake>
std::vector<std::byte> pack_with(const KernelCall& call, int input, std::span<const std::byte> weight) {
  return packed_by(*kMake(call, input), weight);
}
template <PackerFactory kMake>
int64_t packed_bytes_with(const KernelCall& call, int input) {
  return kMake(call, input)->packed_bytes();
}

}  // namespace hetnn::kernels
