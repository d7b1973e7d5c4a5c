// text_order: which text comes first, which next.
#include <algorithm>
#include <numeric>

#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_text(call, 0);
  return {{DType::i64, {elements(call.input(1).shape)}}};
}

void meaning(const Evaluation& e) {
  const std::vector<std::string_view> texts = texts_of(e, 0);
  int64_t* places = e.output().values<int64_t>();
  int64_t* const end = places + texts.size();
  std::iota(places, end, 0);
  std::sort(places, end, [&](int64_t a, int64_t b) {
    const int order = texts[static_cast<size_t>(a)].compare(texts[static_cast<size_t>(b)]);
    return order < 0 || (order == 0 && a < b);
  });
}

}  // namespace

OpDef define_text_order() {
  return {
      .name = "text_order",
      .doc =
          "The places of texts, of all axes as one, in the order of their bytes, which is that of their characters; "
          "equal ones in the order in which they stand.",
      .inputs = text_inputs(),
      .infer = infer,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"text_order(u8[4], i64[3] {2, 4294967297, 0})", "text_order(u8[4], i64[2,2] {1, 4294967297, 0, 1})"}};
}

}  // namespace hetnn::ops
