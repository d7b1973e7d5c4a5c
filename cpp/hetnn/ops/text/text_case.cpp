// text_case: texts in upper or lower case.
#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_text(call);
  return text_types(call, call.input(1).shape);
}

void meaning(const Evaluation& e) {
  const auto change = e.call.flag("upper") ? upper_case : lower_case;
  std::vector<std::string> out;
  int64_t total = 0;
  for (std::string_view from : texts_of(e)) {
    total += static_cast<int64_t>(from.size());
    if (total > INT32_MAX) fail(e.call, "text_case_c3", "the resulting texts have 2^31 bytes or more.");
    std::string& to = out.emplace_back();
    while (!from.empty()) {
      const std::string_view before = from;
      const char32_t character = next_character(from), changed = change(character);
      if (changed == character) {
        to.append(before.substr(0, before.size() - from.size()));
      } else {
        append_character(to, changed);
      }
    }
  }
  write_texts(e, out, {e.input(1).shape.begin(), e.input(1).shape.end()});
}

}  // namespace

OpDef define_text_case() {
  return {.name = "text_case",
          .doc = "Texts in upper or lower case: every character whose case is one other becomes that, in any language.",
          .inputs = text_inputs(),
          .attrs = {{"upper", AttrKind::boolean, true, "upper case, else lower"}, text_total()},
          .outputs = {"bytes", "spans"},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"text_case(u8[4], i64[2] {2, 4294967297}) {total = size}",
                      "text_case(u8[3], i64[] {3}) {upper = false, total = size}"}};
}

}  // namespace hetnn::ops
