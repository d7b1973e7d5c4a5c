// text_equal: whether texts are the same.
#include "hetnn/ops/nest.h"
#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) { return {{DType::boolean, shape_of_two_texts(call)}}; }

void meaning(const Evaluation& e) {
  const std::vector<std::string_view> a = texts_of(e, 0), b = texts_of(e, 2);
  const Result y = e.output();
  bool* to = y.values<bool>();
  nest<2>(y.shape, {broadcast_strides(e.input(1).shape, y.shape), broadcast_strides(e.input(3).shape, y.shape)},
          [&](int64_t i, int64_t j) { *to++ = a[static_cast<size_t>(i)] == b[static_cast<size_t>(j)]; });
}

}  // namespace

OpDef define_text_equal() {
  return {.name = "text_equal",
          .doc = "Whether texts are the same, byte for byte; shapes broadcast.",
          .inputs = two_texts(),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"text_equal(u8[4], i64[2] {2, 4294967297}, u8[4], i64[] {2})",
                      "text_equal(u8[n], i64[2] {0, 0}, u8[4], i64[2] {2, 1})"}};
}

}  // namespace hetnn::ops
