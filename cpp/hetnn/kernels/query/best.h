// Which of the kernels that serve a call computes it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/query/machine.h"
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {

/// A variant as it stands among those of a call: the time that is predicted, or why it does not serve.
struct Ranked {
  const Variant* variant;
  double predicted_us;  // infinite where it does not serve
  Refusal refusal;
};

/// Those of `variants`, which all compute the call, whose operator does such amounts: that serve it from the least time
/// up, then the others. Where times are equal they stand as the list has them.
std::vector<Ranked> ranked(std::span<const Variant* const> variants, const KernelCall& call, const Amounts& amounts,
                           const Machine& machine = default_machine());

/// The one of least time of those that `serves` takes: the first unless others have work of their own. Null where none
/// serves.
const Variant* best(std::span<const Variant* const> variants, const KernelCall& call,
                    const std::function<bool(const Variant&)>& serves, const Machine& machine = default_machine());

/// What runs a call of other sizes from a file that names a kernel: the best of those that read the same packed bytes.
const Variant& exchanged(const Variant& variant, const KernelCall& call);

}  // namespace hetnn::kernels
