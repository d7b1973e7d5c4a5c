// Arrays as a C program hands them over: any number, type, rank and sizes, in exactly as much memory as they say.
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <vector>

#include "fuzz.h"
#include "hetnn/capi/handles.h"
#include "hetnn/capi/hetnn.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/ir/text.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

constexpr const char* kNetwork =
    R"(graph @net {stage = imported, symbols = [n: 0..9 = 2, m: 1..8 = 3]} (%x: f32[n,m], %i: i64[n], %b: bool[m]) -> (%y, %z, %p) {
  %y = relu(%x) : f32[n,m]
  %g = constant() {value = f32[4] {1, 2, 3, 4}} : f32[4]
  %z = gather(%g, %i) {axis = 0} : f32[n]
  %p = logical_not(%b) : bool[m]
}
)";

hetnn_executable* executable() {
  static hetnn_executable* const made = [] {
    const TargetSpec target = parse_target(R"({"devices": [{"name": "cpu", "kind": "cpu"}]})");
    const auto image = Compilation::make(ir::parse(kNetwork), target, {})->image();
    hetnn_executable* out = nullptr;
    const hetnn_options options{sizeof options, 1, 0, 0};
    HETNN_ASSERT(hetnn_load_memory(image.data(), image.size(), &options, &out) == HETNN_OK, hetnn_error_message());
    return out;
  }();
  return made;
}

// The bytes of an input, one after another; zeros behind the last.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  uint8_t next() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  void fill(std::byte* to, size_t count) {
    for (size_t k = 0; k < count; ++k) to[k] = static_cast<std::byte>(next());
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

struct Array {
  hetnn_tensor tensor{};
  std::vector<int64_t> dims;
  std::unique_ptr<std::byte[]> data;  // of exactly its bytes, so that a sanitizer sees who goes beyond
  bool is_input;

  Array(Bytes& bytes, bool input) : is_input(input) {
    const uint8_t kind = bytes.next();
    tensor.size = kind == 0xff ? bytes.next() % sizeof tensor : sizeof tensor;
    tensor.dtype = static_cast<hetnn_dtype>(static_cast<int>(bytes.next() % 32) - 2);
    tensor.rank = static_cast<int32_t>(bytes.next() % 16) - 2;
    for (int k = 0; k < tensor.rank; ++k) {
      const uint8_t size = bytes.next();
      dims.push_back(size < 200 ? size % 12 : size < 228 ? -1 : INT64_MAX >> (size - 228));
    }
    tensor.dims = kind % 16 == 1 ? nullptr : dims.data();
    if (kind % 16 == 2) return;  // without memory: a fault of an input, a wish of an output
    double count = 8;
    for (const int64_t size : dims) count *= static_cast<double>(size);
    if (!(count >= 0) || count > 65536) return;
    const bool known = tensor.dtype >= 0 && tensor.dtype < static_cast<int>(std::size(kAllDTypes));
    const auto room = static_cast<size_t>(count) / 8 *
                      (known ? static_cast<size_t>(dtype_bytes(static_cast<DType>(tensor.dtype))) : 8U);
    data = std::make_unique<std::byte[]>(std::max<size_t>(room, 1));
    bytes.fill(data.get(), room);
    tensor.data = data.get();
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() {
    if (!is_input && tensor.size == sizeof tensor && tensor.data != data.get()) hetnn_tensor_free(&tensor);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const size_t counts = bytes.next();
  const size_t inputs = counts % 8 == 7 ? counts / 64 : 3, outputs = counts / 8 % 8 == 7 ? counts / 64 : 3;
  std::deque<Array> all;
  for (size_t k = 0; k < inputs + outputs; ++k) all.emplace_back(bytes, k < inputs);
  std::vector<hetnn_tensor> in, out;
  for (const Array& array : all) (array.is_input ? in : out).push_back(array.tensor);
  const hetnn_status status = hetnn_run(executable(), nullptr, in.data(), in.size(), out.data(), out.size());
  if (status == HETNN_INTERNAL) {
    std::fprintf(stderr, "%s\n", hetnn_error_message());
    std::abort();
  }
  for (size_t k = 0; k < outputs; ++k) all[inputs + k].tensor = out[k];
  return 0;
}
