// mirror: the elements in the opposite order.
#include <algorithm>

#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

// x [A...] -> y [A...].
std::vector<Type> infer(const Call& call) { return {{call.input(0).dtype, call.input(0).shape}}; }

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const int64_t bytes = dtype_bytes(x.dtype);
  std::byte* to = e.output().data;
  for (int64_t k = x.elems(); k-- > 0;) to = std::copy_n(x.data + k * bytes, bytes, to);
}

}  // namespace

OpDef define_mirror() {
  return {.name = "mirror",
          .doc = "The elements in the opposite order.",
          .inputs = {{"x", "any shape"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"mirror(f32[2,3])"}};
}

}  // namespace hetnn::ops
