// text_concat: texts one behind the other.
#include "hetnn/ops/nest.h"
#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_text(call, 0);
  check_text(call, 2);
  const auto shape = broadcast(call.input(1).shape, call.input(3).shape);
  if (!shape) {
    fail(call, "text_concat_c4",
         text("the spans must broadcast; got ", to_string(call.input(1)), " and ", to_string(call.input(3)), "."));
  }
  return text_types(call, *shape);
}

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
  std::vector<InputDef> inputs = text_inputs("a_bytes", "a_spans"), more = text_inputs("b_bytes", "b_spans");
  inputs.insert(inputs.end(), more.begin(), more.end());
  return {.name = "text_concat",
          .doc = "Each text of a with one of b behind it; shapes broadcast.",
          .inputs = inputs,
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
