// Buffers to tensors, the interpreter, tensors to buffers.
#include "hetnn/runtime/reference_executor.h"

#include "hetnn/base/error.h"
#include "hetnn/runtime/layout_copy.h"

namespace hetnn::runtime {

void run_reference(const program::Program& program, const program::Subprogram& subprogram,
                   const std::vector<std::byte*>& addresses, const std::vector<BoundBuffer>& buffers,
                   const Interpreter* interpreter) {
  if (!interpreter || !*interpreter) {
    throw Unsupported(text("subprogram '", subprogram.name, "' is on the device '", subprogram.device,
                           "', which runs by the operators' meanings, and those are part of the compiler, which is not "
                           "at hand. Compile for cpu, or load it where hetnn is installed whole."));
  }
  std::vector<Tensor> inputs;
  for (const int32_t id : subprogram.inputs) {
    const BoundBuffer& buffer = buffers[static_cast<size_t>(id)];
    const std::byte* from = addresses[static_cast<size_t>(id)];
    std::byte* data = nullptr;
    inputs.push_back(Tensor::zeros(buffer.view.dtype, buffer.shape, &data));
    if (buffer.view.layout == Layout::nhwc) {
      copy_map(dtype_bytes(buffer.view.dtype), buffer.shape, from, {Layout::nhwc, buffer.view.pitch_elems}, data, {});
    } else if (inputs.back().bytes() > 0) {
      std::memcpy(data, from, static_cast<size_t>(inputs.back().bytes()));
    }
  }
  const auto& code = std::get<program::ReferenceCode>(subprogram.code);
  const std::string_view graph(reinterpret_cast<const char*>(program.weights.bytes.data()) + code.text_offset_bytes,
                               static_cast<size_t>(code.text_bytes));
  const std::vector<Tensor> outputs = (*interpreter)(graph, inputs);
  if (outputs.size() != subprogram.outputs.size())
    throw InvalidModel(text("subprogram '", subprogram.name, "' has ", subprogram.outputs.size(),
                            " outputs; the interpreter returned ", outputs.size(), "."));
  for (size_t k = 0; k < outputs.size(); ++k) {
    const auto id = static_cast<size_t>(subprogram.outputs[k]);
    const BoundBuffer& buffer = buffers[id];
    if (outputs[k].dtype() != buffer.view.dtype || outputs[k].shape() != buffer.shape)
      throw InvalidModel(text("subprogram '", subprogram.name, "': output ", k, " must be ",
                              dtype_name(buffer.view.dtype), to_string(Shape(buffer.shape.begin(), buffer.shape.end())),
                              "; the interpreter returned ", dtype_name(outputs[k].dtype()),
                              to_string(Shape(outputs[k].shape().begin(), outputs[k].shape().end())), "."));
    if (buffer.view.layout == Layout::nhwc) {
      copy_map(dtype_bytes(buffer.view.dtype), buffer.shape, outputs[k].data(), {}, addresses[id],
               {Layout::nhwc, buffer.view.pitch_elems});
    } else if (outputs[k].bytes() > 0) {
      std::memcpy(addresses[id], outputs[k].data(), static_cast<size_t>(outputs[k].bytes()));
    }
  }
}

}  // namespace hetnn::runtime
