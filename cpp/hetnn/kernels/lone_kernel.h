// Kernels of calls that stand alone, on plain memory: the calls in bodies of loops.
#pragma once

#include "hetnn/ops/meaning.h"

namespace hetnn::kernels {

/// Makes kernels for calls, packing the weights among their constants. One thread runs them.
class LoneKernels final : public ops::FastCalls {
 public:
  std::unique_ptr<ops::FastCall> make(const ops::Call& call, std::span<const ops::View> constants) const override;
};

}  // namespace hetnn::kernels
