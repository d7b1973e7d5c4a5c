// Data sheets of an NPU: one network is compiled for what they describe, and simulated.
#include "fuzz.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/ir/text.h"
#include "hetnn/runtime/executable.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

// `count` values of a constant.
std::string filled(int count) {
  std::string out = "{0.5";
  for (int k = 1; k < count; ++k) out += text(", ", k % 7 - 3);
  return out + "}";
}

const std::string& network() {
  static const std::string made = R"(graph @net {stage = imported} (%x: f32[1,3,9,8]) -> (%y) {
  %w = constant() {value = f32[4,3,3,3] )" +
                                  filled(108) + R"(} : f32[4,3,3,3]
  %b = constant() {value = f32[4] {1, 2, -3, 4}} : f32[4]
  %c = conv2d(%x, %w, %b) {stride = [2,2], padding = [1,1]} : f32[1,4,5,4]
  %r = relu(%c) : f32[1,4,5,4]
  %v = constant() {value = f32[4,1,3,3] )" +
                                  filled(36) + R"(} : f32[4,1,3,3]
  %d = conv2d(%r, %v, _) {padding = [1,1], groups = 4} : f32[1,4,5,4]
  %a = add(%d, %r) : f32[1,4,5,4]
  %p = max_pool2d(%a) {kernel = [2,2], stride = [2,2]} : f32[1,4,2,2]
  %f = reshape(%p) {shape = [1,16]} : f32[1,16]
  %m = constant() {value = f32[5,16] )" +
                                  filled(80) + R"(} : f32[5,16]
  %l = linear(%f, %m, _) : f32[1,5]
  %y = sigmoid(%l) : f32[1,5]
}
)";
  return made;
}

void use(std::string_view sheet) {
  const TargetSpec target =
      parse_target(R"({"devices": [{"name": "cpu", "kind": "cpu"}, {"name": "npu", "kind": "npu", "spec": )" +
                   std::string(sheet) + "}]}");
  CompileOptions options = parse_options(R"({"strategy": "take-all", "rewrite": "always"})");
  const auto compilation = Compilation::make(ir::parse(network()), target, options);
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
