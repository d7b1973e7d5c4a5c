// fmod: y = fmod(a, b).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_fmod() {
  return elementwise(
      Function::fmod,
      {.doc = "What is left of a after taking away b as often as goes, of the sign of a.",
       .torch = {{"aten.fmod.Tensor", "a b"}, {"aten.fmod.Scalar", "a b"}},
       .onnx = {},
       .samples = {"fmod(f32[2,3,5,7], f32[2,3,5,7])", "fmod(f32[2,3,4,4], f32[3,1,1])", "fmod(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
