// text_match: whether whole texts match a pattern.
#include "hetnn/ops/text/pattern.h"
#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

TextPattern pattern_of(const Call& call) {
  try {
    return TextPattern(call.string("pattern"));
  } catch (const InvalidModel& error) {
    fail(call, "text_match_c3", text("its pattern '", call.string("pattern"), "': ", error.what(), "."));
  }
}

std::vector<Type> infer(const Call& call) {
  check_text(call);
  pattern_of(call);
  return {{DType::boolean, call.input(1).shape}};
}

void meaning(const Evaluation& e) {
  const TextPattern pattern = pattern_of(e.call);
  bool* to = e.output().values<bool>();
  for (const std::string_view each : texts_of(e)) *to++ = pattern.matches(each);
}

}  // namespace

OpDef define_text_match() {
  return {.name = "text_match",
          .doc = "Whether the whole of a text matches a regular expression, in time linear in the text's length.",
          .inputs = text_inputs(),
          .attrs =
              {{"pattern", AttrKind::string, std::nullopt,
                "as RE2 has them: . [a-z] [^a] \\d \\w \\s \\b ^ $ () (?:) | * + ? {2,3}, and (?i) (?s) at its front"}},
          .onnx = {{"RegexFullMatch"}},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"text_match(u8[6], i64[2] {3, 12884901891}) {pattern = \"a*(b|.)+\"}"}};
}

}  // namespace hetnn::ops
