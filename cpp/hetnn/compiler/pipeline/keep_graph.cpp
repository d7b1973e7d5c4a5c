// Keeps the planned graph in the program where that was asked for: as text, with its large constants among the weights.
#include "hetnn/base/bool_bytes.h"
#include "hetnn/base/error.h"
#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/text.h"

namespace hetnn::pipeline {

void keep_graph(Draft& draft) {
  if (!draft.options.keep_graph) return;
  // What the program holds in plain layout already has its place there.
  draft.assembler.program().graph_text = ir::print(
      draft.graph, {.place = [&](const Tensor& tensor) { return draft.assembler.blob(program::Blob(tensor)); }});
}

}  // namespace hetnn::pipeline

namespace hetnn {

std::optional<ir::Graph> kept_graph(const std::shared_ptr<const program::Program>& program, const std::string& called) {
  if (!program->graph_text) return std::nullopt;
  const auto held = [&](DType dtype, std::vector<int64_t> shape, int64_t offset_bytes) {
    int64_t bytes = dtype_bytes(dtype);
    for (const int64_t size : shape) bytes *= size;
    if (offset_bytes % program::kAlignment != 0 || !program->weights.holds(offset_bytes, bytes)) {
      throw InvalidModel(text(called, ": its graph has a constant of ", bytes, " bytes at ", offset_bytes,
                              ", where none are. The file is damaged or was altered."));
    }
    const auto at = program->weights.at(offset_bytes, bytes);
    if (dtype == DType::boolean && first_not_bool(at))
      throw InvalidModel(text(called, ": its graph has a bool that is neither 0 nor 1. The file was altered."));
    return Tensor(dtype, std::move(shape), program, at.data());
  };
  const auto state = [&](DType dtype, std::vector<int64_t> shape, const std::string& input) {
    for (const program::State& each : program->states) {
      if (each.name == input) return held(dtype, std::move(shape), each.offset_bytes);
    }
    throw InvalidModel(text(called, ": its graph keeps '", input, "', which is no state. The file was altered."));
  };
  return ir::parse(program->graph_text->read(), {held, state});
}

}  // namespace hetnn
