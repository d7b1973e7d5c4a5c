// What is printed parses back to the same text, whatever is in it.
#include <gtest/gtest.h>

#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/text.h"

namespace hetnn::ir {
namespace {

class RoundTrip : public testing::Test {
 protected:
};

TEST_F(RoundTrip, KeepsWhatIsWritten) {
  for (const char* source : {
           "graph @empty {stage = imported} () -> () {\n}\n",
           "graph @\"a name, quoted\" {stage = planned} (%x: i64[]) -> (%x as \"out \\\"1\\\"\", %x as \"2\") {\n}\n",
           "graph @s {stage = legal, symbols = [h: 1..9 = 2, w: 3..3 = 3]} (%x: f32[h,2*w - 1]) -> (%y) {\n"
           "  %y = relu(%x) : f32[h,2*w - 1] on npu in 7 group 12 loc(\"a.b\")\n}\n",
           "graph @q {stage = imported} (%x: f32[2]) -> (%y) {\n"
           "  %y = relu(%x) : f32[2] loc(\"a \\\"b\\\"\\\\c\\nd\", \"my net.py\":12)\n}\n",
           "graph @i {stage = imported} (%x: i8{0.03125:-9}[2,3]) -> (%y) {\n"
           "  %y = leaky_relu(%x) {negative_slope = 0.25, q_scale = [0.0625], q_zero = 5} : i8{0.0625:5}[2,3]\n}\n",
           "graph @k {stage = imported} () -> (%k, %n, %b) {\n"
           "  %k = constant() {value = f32[6] {0.1, -0, inf, -inf, nan, 1e-45}} : f32[6]\n"
           "  %n = constant() {value = i8[3] {-128, 0, 127}} : i8[3]\n"
           "  %b = constant() {value = bool[2] {0, 1}} : bool[2]\n}\n",
       }) {
    EXPECT_EQ(print(parse(source)), source);
  }
}

TEST_F(RoundTrip, KeepsEveryBitOfConstants) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::u8, DType::i16, DType::i32}) {
    for (const int64_t elems : {0, 1, 16, 17}) {
      std::byte* bytes = nullptr;
      const Tensor value = Tensor::zeros(dtype, {elems}, &bytes);
      for (int64_t k = 0; k < value.bytes(); ++k) bytes[k] = static_cast<std::byte>(1 + 37 * k % 101);
      Graph graph("constants");
      Rewriter rewriter(graph);
      rewriter.add_output(rewriter.constant(value));
      const Graph back = parse(print(graph));
      EXPECT_EQ(back.outputs()[0]->producer()->tensor("value"), value) << dtype_name(dtype) << " of " << elems;
    }
  }
}

}  // namespace
}  // namespace hetnn::ir
