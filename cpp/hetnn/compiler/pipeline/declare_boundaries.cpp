// Buffers for what passes in and out of the model and between subgraphs.
#include <algorithm>

#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/symbols.h"

namespace hetnn::pipeline {

void declare_crossing(const ir::Graph& model, const ir::Value& value, backends::Assembler& assembler) {
  const bool image = plan::passes_as_image(model, value);
  assembler.set_boundary(value.name(),
                         assembler.arena_buffer(value.name(), value.type(), image ? Layout::nhwc : Layout::plain,
                                                image ? value.shape()[1] : Dim(0)));
}

void declare_boundaries(Draft& draft) {
  ir::drop_unused_symbols(draft.graph);
  const ir::Graph& model = draft.graph;
  backends::Assembler& assembler = draft.assembler;
  program::Program& program = assembler.program();
  program.symbols = model.symbols;
  auto declare_port = [&](const ir::Value* value, const std::string& name, program::Place place,
                          std::vector<program::Port>& ports) {
    const int32_t id = assembler.port_buffer(value->name(), value->type(), place);
    assembler.set_boundary(value->name(), id);
    ports.push_back({name, id});
  };
  std::vector<program::Port> state_inputs, state_outputs;  // by the names in `mutations`
  const auto is_state = [&](std::string ir::Mutation::*name, const std::string& wanted) {
    return std::any_of(model.mutations.begin(), model.mutations.end(),
                       [&](const ir::Mutation& mutation) { return mutation.*name == wanted; });
  };
  for (const ir::Value* input : model.inputs()) {
    declare_port(input, input->name(), program::Place::input,
                 is_state(&ir::Mutation::input, input->name()) ? state_inputs : program.inputs);
  }
  for (size_t k = 0; k < model.outputs().size(); ++k) {
    const std::string& name = model.output_names[k];
    declare_port(model.outputs()[k], name, program::Place::output,
                 is_state(&ir::Mutation::output, name) ? state_outputs : program.outputs);
  }
  const auto buffer_of = [](const std::vector<program::Port>& ports, const std::string& name) {
    return std::find_if(ports.begin(), ports.end(), [&](const auto& port) { return port.name == name; })->buffer;
  };
  for (const ir::Mutation& mutation : model.mutations) {
    program.states.push_back({mutation.input, buffer_of(state_inputs, mutation.input),
                              buffer_of(state_outputs, mutation.output),
                              assembler.own_blob(program::Blob(mutation.initial)), mutation.initial.bytes()});
  }
  for (const plan::Subgraph& subgraph : plan::subgraphs_of(model)) {
    for (const ir::Value* output : subgraph.outputs) {
      if (!model.is_output(output)) declare_crossing(model, *output, assembler);
    }
  }
}

}  // namespace hetnn::pipeline
