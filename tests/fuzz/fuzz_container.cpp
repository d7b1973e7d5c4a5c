// Executables whose hashes fit: program.json as `hetnn unpack` writes it, a byte 0, and the weights. What loads, runs.
#include "hetnn/program/pack.h"
#include "run.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

program::Image image_of(std::string_view input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const auto weights = std::as_bytes(std::span(input.substr(std::min(end + 1, input.size()))));
  return program::put_together({std::string(input.substr(0, end)), "{}", "{}", {weights.begin(), weights.end()}},
                               "fuzz");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] { fuzz::run_on_zeros(image_of(fuzz::text_of(data, size)), 2); });
  return 0;
}
