// Ranks kernels by the time that their work takes.
#include "hetnn/kernels/query/best.h"

#include <limits>

namespace hetnn::kernels {
namespace {

double predicted_us(const Variant& variant, const KernelCall& call, const Amounts& amounts, const Machine& machine) {
  return time_us(work_of(variant, call, amounts, machine, machine.threads), machine, machine.threads);
}

}  // namespace

std::vector<Ranked> ranked(std::span<const Variant* const> variants, const KernelCall& call, const Amounts& amounts,
                           const Machine& machine) {
  std::vector<Ranked> out;
  for (const Variant* variant : variants) {
    Ranked row{variant, std::numeric_limits<double>::infinity(), refusal_of(*variant, call)};
    if (!row.refusal) row.predicted_us = predicted_us(*variant, call, amounts, machine);
    size_t at = out.size();
    while (at > 0 && row.predicted_us < out[at - 1].predicted_us) --at;
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(at), std::move(row));
  }
  return out;
}

const Variant* best(std::span<const Variant* const> variants, const KernelCall& call,
                    const std::function<bool(const Variant&)>& serves, const Machine& machine) {
  const Variant* found = nullptr;
  double found_us = -1;  // not asked yet
  for (const Variant* variant : variants) {
    // Of a class alone nothing is told that tells them apart.
    if ((found && !(variant->work && found->work)) || !serves(*variant)) continue;
    if (!found) {
      found = variant;
      continue;
    }
    if (found_us < 0) found_us = predicted_us(*found, call, {}, machine);
    const double us = predicted_us(*variant, call, {}, machine);
    if (us >= found_us) continue;
    found = variant;
    found_us = us;
  }
  return found;
}

const Variant& exchanged(const Variant& variant, const KernelCall& call) {
  std::vector<const Variant*> same;
  if (!variant.packing.empty())
    for (const Variant& each : all_kernels())
      if (each.op == variant.op && each.packing == variant.packing) same.push_back(&each);
  const Variant* found = best(same, call, [&](const Variant& each) { return !refusal_of(each, call); });
  return found ? *found : variant;
}

}  // namespace hetnn::kernels
