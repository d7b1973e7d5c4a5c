// Graphs as text: what parses is compiled for the general processor, and run where it is small.
#include "hetnn/compiler/compile.h"
#include "hetnn/ir/text.h"
#include "run.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

bool is_small(const ir::Graph& graph) {
  double bytes = 0;
  Bindings hints;
  for (const Symbol& symbol : graph.symbols) hints[symbol.name] = symbol.hint;
  const auto add = [&](const ir::Value* value) {
    double own = static_cast<double>(dtype_bytes(value->type().dtype));
    for (const int64_t size : evaluate(value->type().shape, hints)) own *= static_cast<double>(size);
    bytes += own;
  };
  for (const ir::Value* input : graph.inputs()) add(input);
  for (const ir::Node* node : graph.nodes()) {
    for (const ir::Value* output : node->outputs()) add(output);
  }
  return bytes < static_cast<double>(fuzz::kMostBytes);
}

void use(std::string_view text) {
  ir::Graph graph = ir::parse(text);
  HETNN_ASSERT(ir::print(ir::parse(ir::print(graph))) == ir::print(graph), "the text form is no inverse of parsing");
  if (!is_small(graph)) return;
  static const TargetSpec target = parse_target(R"({"devices": [{"name": "cpu", "kind": "cpu"}]})");
  const auto compilation = Compilation::make(std::move(graph), target, {});
  fuzz::run_on_zeros(compilation->image(), 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] { use(fuzz::text_of(data, size)); });
  return 0;
}
