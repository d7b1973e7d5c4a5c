// text_find: places of texts in a table of texts.
#include <unordered_map>

#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_text(call, 0);
  check_text(call, 2);
  return {{DType::i64, call.input(1).shape}};
}

void meaning(const Evaluation& e) {
  std::unordered_map<std::string_view, int64_t> places;
  int64_t count = 0;
  for (const std::string_view each : texts_of(e, 2)) places.emplace(each, count++);
  int64_t* to = e.output().values<int64_t>();
  for (const std::string_view each : texts_of(e, 0)) {
    const auto at = places.find(each);
    *to++ = at == places.end() ? count : at->second;
  }
}

}  // namespace

OpDef define_text_find() {
  std::vector<InputDef> inputs = text_inputs(), more = text_inputs("table_bytes", "table_spans");
  inputs.insert(inputs.end(), more.begin(), more.end());
  return {
      .name = "text_find",
      .doc = "Where each text first stands in a table, in row-major order; what is not in it gets the table's length.",
      .inputs = inputs,
      .infer = infer,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"text_find(u8[4], i64[2] {2, 4294967297}, u8[4], i64[2] {2, 1})"}};
}

}  // namespace hetnn::ops
