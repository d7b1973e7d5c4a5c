// Executables whose hashes fit: program.json as `hetnn unpack` writes it, a byte 0, and the weights. What loads, runs.
#include "fuzz.h"
#include "hetnn/program/pack.h"
#include "hetnn/runtime/executable.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

std::vector<std::byte> image_of(std::string_view input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const auto weights = std::as_bytes(std::span(input.substr(std::min(end + 1, input.size()))));
  return program::put_together({std::string(input.substr(0, end)), "{}", "{}", {weights.begin(), weights.end()}},
                               "fuzz");
}

void use(std::vector<std::byte> bytes) {
  auto image = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  runtime::Executable executable({image, std::span(*image)}, 1);
  const auto program = executable.program();
  Bindings hints;
  for (const Symbol& symbol : program->symbols) hints[symbol.name] = symbol.hint;
  std::vector<Tensor> inputs;
  for (const program::Port& port : program->inputs) {
    const program::Buffer& buffer = program->buffers[static_cast<size_t>(port.buffer)];
    std::vector<int64_t> shape = evaluate(buffer.shape, hints);
    double bytes_of_input = static_cast<double>(dtype_bytes(buffer.dtype));
    for (const int64_t size : shape) {
      if (size < 0) return;
      bytes_of_input *= static_cast<double>(size);
    }
    if (bytes_of_input > static_cast<double>(fuzz::kMostBytes)) return;
    inputs.push_back(Tensor::zeros(buffer.dtype, std::move(shape)));
  }
  if (executable.arena_bytes(hints) > fuzz::kMostBytes) return;
  const Stop stop = fuzz::deadline();
  for (int run = 0; run < 2; ++run) executable.run(inputs, {.stop = &stop});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] { use(image_of(fuzz::text_of(data, size))); });
  return 0;
}
