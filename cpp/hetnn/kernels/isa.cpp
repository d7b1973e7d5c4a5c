// Which instruction sets there are, by way of Highway's dispatcher.
#include "hetnn/kernels/isa.h"

#include "hetnn/base/error.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/targets.h"

namespace hetnn::kernels {

std::vector<std::string> available_isas() {
  hwy::SetSupportedTargetsForTest(0);
  std::vector<std::string> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void restrict_isa(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
  if (name.empty()) return;
  std::string known;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) {
      hwy::SetSupportedTargetsForTest(target);
      return;
    }
    known.append(known.empty() ? "" : ", ").append(hwy::TargetName(target));
  }
  throw Unsupported(
      text("instruction set '", name, "' is not available; this machine has ", known, ". Choose one of them."));
}

}  // namespace hetnn::kernels
