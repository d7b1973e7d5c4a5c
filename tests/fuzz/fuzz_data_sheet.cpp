// Data sheets of an NPU: one network is compiled for what they describe, and simulated.
#include "fuzz.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/ir/text.h"
#include "hetnn/runtime/executable.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

constexpr std::string_view kNetwork =
#include "npu_network.inc"
    ;

void use(std::string_view sheet) {
  const TargetSpec target =
      parse_target(R"({"devices": [{"name": "cpu", "kind": "cpu"}, {"name": "npu", "kind": "npu", "spec": )" +
                   std::string(sheet) + "}]}");
  CompileOptions options = parse_options(R"({"strategy": "take-all", "rewrite": "always"})");
  const auto compilation = Compilation::make(ir::parse(kNetwork), target, options);
  auto image = std::make_shared<const program::Image>(compilation->image());
  runtime::Executable executable({image, std::span(*image)}, 1);
  const Stop stop = fuzz::deadline();
  executable.run(std::vector{Tensor::zeros(DType::f32, {1, 3, 9, 8})}, {.stop = &stop});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] { use(fuzz::text_of(data, size)); });
  return 0;
}
