// text_concat: texts one behind the other.
#include "hetnn/ops/nest.h"
#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) { return text_types(call, shape_of_two_texts(call)); }

void meaning(const Evaluation& e) {
  const std::vector<std::string_view> a = texts_of(e, 0), b = texts_of(e, 2);
  const std::vector<int64_t> shape = values(e.call.output(1).shape);
  std::vector<std::string> out;
  int64_t total = 0;
  nest<2>(shape, {broadcast_strides(e.input(1).shape, shape), broadcast_strides(e.input(3).shape, shape)},
          [&](int64_t i, int64_t j) {
            const std::string_view first = a[static_cast<size_t>(i)], second = b[static_cast<size_t>(j)];
            total += static_cast<int64_t>(first.size() + second.size());
            if (total > INT32_MAX) fail(e.call, "text_concat_c3", "the resulting texts have 2^31 bytes or more.");
            out.push_back(std::string(first).append(second));
          });
  write_texts(e, out, shape);
}

}  // namespace

OpDef define_text_concat() {
  return {.name = "text_concat",
          .doc = "Each text of a with one of b behind it; shapes broadcast.",
          .inputs = two_texts(),
          .attrs = {text_total()},
          .outputs = {"bytes", "spans"},
          .onnx = {{"StringConcat"}},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"text_concat(u8[4], i64[2] {2, 4294967297}, u8[4], i64[] {2}) {total = size}",
                      "text_concat(u8[1], i64[1] {1}, u8[2], i64[3] {2, 0, 1}) {total = 6}"}};
}

}  // namespace hetnn::ops
