// Runs what an input became, on zeros.
#pragma once

#include "fuzz.h"
#include "hetnn/runtime/executable.h"

namespace hetnn::fuzz {

/// Runs an image `times` times at the usual sizes of its symbols; an image that would take too much memory not at all.
inline void run_on_zeros(program::Image bytes, int times) {
  auto image = std::make_shared<const program::Image>(std::move(bytes));
  runtime::Executable executable({image, std::span(*image)}, 1);
  const auto program = executable.program();
  Bindings hints;
  for (const Symbol& symbol : program->symbols) hints[symbol.name] = symbol.hint;
  std::vector<Tensor> inputs;
  for (const program::Port& port : program->inputs) {
    const program::Buffer& buffer = program->buffers[static_cast<size_t>(port.buffer)];
    std::vector<int64_t> shape = evaluate(buffer.shape, hints);
    double input_bytes = static_cast<double>(dtype_bytes(buffer.dtype));
    for (const int64_t size : shape) {
      if (size < 0) return;
      input_bytes *= static_cast<double>(size);
    }
    if (input_bytes > static_cast<double>(kMostBytes)) return;
    inputs.push_back(Tensor::zeros(buffer.dtype, std::move(shape)));
  }
  if (executable.arena_bytes(hints) > kMostBytes) return;
  const Stop stop = deadline();
  for (int run = 0; run < times; ++run) executable.run(inputs, {.stop = &stop});
}

}  // namespace hetnn::fuzz
