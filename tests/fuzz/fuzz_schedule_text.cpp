// Schedules of an NPU: what is taken passes the verifier and computes what the compiler's own schedule does.
#include <cmath>

#include "fuzz.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/ir/text.h"
#include "hetnn/runtime/executable.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

constexpr std::string_view kNetwork =
#include "npu_network.inc"
    ;
constexpr std::string_view kTarget =
#include "small_npu.inc"
    ;

// Compiled and run on a ramp.
std::vector<Tensor> computed(std::string_view schedule) {
  static const TargetSpec target = parse_target(kTarget);
  CompileOptions options = parse_options(R"({"strategy": "take-all", "rewrite": "always"})");
  options.schedule = schedule;
  const auto compilation = Compilation::make(ir::parse(kNetwork), target, options);
  auto image = std::make_shared<const program::Image>(compilation->image());
  runtime::Executable executable({image, std::span(*image)}, 1);
  std::vector<float> ramp(1 * 3 * 9 * 8);
  for (size_t k = 0; k < ramp.size(); ++k) ramp[k] = static_cast<float>(k % 13) - 6;
  const Stop stop = fuzz::deadline();
  return executable.run(std::vector{Tensor::of<float>({1, 3, 9, 8}, ramp)}, {.stop = &stop});
}

void use(std::string_view schedule) {
  static const std::vector<Tensor> wanted = computed("");
  const std::vector<Tensor> found = computed(schedule);
  const std::span<const float> got = found[0].values<float>(), want = wanted[0].values<float>();
  // Sums may be split elsewhere.
  for (size_t k = 0; k < got.size(); ++k)
    HETNN_ASSERT(std::abs(got[k] - want[k]) < 1e-5, "element ", k, " is ", got[k], ", not ", want[k]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] { use(fuzz::text_of(data, size)); });
  return 0;
}
