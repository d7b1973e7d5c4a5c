// Requests to a server: the first byte chooses the form, and how much of an HTTP body is JSON; what is read and fits is
// answered with its own inputs.
#include "fuzz.h"
#include "hetnn/serve/grpc_form.h"
#include "hetnn/serve/http_form.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

const std::vector<serve::Signature::Port> kPorts = {
    {"a", DType::f32, 0}, {"b", DType::i8, 1}, {"t", std::nullopt, 2, 3}};
const serve::Signature kNetwork = {"two", kPorts, kPorts};

void use(unsigned choice, std::string_view request) {
  const auto kept = std::make_shared<const std::string>(request);
  const serve::Bytes bytes{kept, {reinterpret_cast<const std::byte*>(kept->data()), kept->size()}};
  const bool http = choice % 2 == 0;
  std::optional<int64_t> head;
  if (choice >= 4) head = static_cast<int64_t>(request.size()) - (choice >> 2);
  serve::Inference read = http ? serve::read_http("two", "", bytes, head) : serve::read_grpc(bytes);
  for (serve::Given& given : read.inputs) {
    const Tensor& shaped = given.dtype ? given.tensor : given.spans;
    if (!given.shared) HETNN_ASSERT(shaped.elems() == given.elems, given.name);
    if (given.shared && !given.dtype) given.spans = Tensor::zeros(DType::i64, {0});
    given.shared.reset();
    if (given.dtype) given.tensor = Tensor::zeros(*given.dtype, {1});
  }
  const serve::Bound bound = serve::bind(read, kNetwork);
  const serve::Written written =
      http ? serve::write_http(read, "1", bound, bound.inputs) : serve::write_grpc(read, "1", bound, bound.inputs);
  HETNN_ASSERT(!written.pieces.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) fuzz::attempt([&] { use(data[0], fuzz::text_of(data + 1, size - 1)); });
  return 0;
}
