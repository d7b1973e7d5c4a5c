// text_tokens: the tokens of texts, between separators or as an expression finds them.
#include <algorithm>

#include "hetnn/ops/sizes.h"
#include "hetnn/ops/text/pattern.h"
#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

using Parts = std::vector<std::string_view>;

TextPattern pattern_of(const Call& call) {
  try {
    return TextPattern(call.string("pattern"));
  } catch (const InvalidModel& error) {
    fail(call, "text_tokens_c3", text("its pattern '", call.string("pattern"), "': ", error.what(), "."));
  }
}

std::vector<Type> infer(const Call& call) {
  check_text(call);
  pattern_of(call);
  fixed_integer(call, "least");
  Shape parts = call.input(1).shape;
  parts.push_back(call.integer("parts"));
  return {{DType::i64, parts}, {DType::i64, call.input(1).shape}};
}

int64_t characters(std::string_view part) {
  int64_t count = 0;
  for (; !part.empty(); ++count) next_character(part);
  return count;
}

void add(Parts& parts, std::string_view part, int64_t least) {
  if (!part.empty() && characters(part) >= least) parts.push_back(part);
}

// What the pattern finds, each time the longest that begins first, or what stands between.
Parts tokens_of(std::string_view whole, const TextPattern& pattern, bool between, int64_t least) {
  Parts out;
  size_t begin = 0;  // of what stands between
  for (size_t at = 0; at < whole.size();) {
    const size_t length = pattern.longest(whole, at);
    if (length == 0 || length == std::string_view::npos) {
      std::string_view rest = whole.substr(at);
      next_character(rest);
      at = whole.size() - rest.size();
      continue;
    }
    if (between) add(out, whole.substr(begin, at - begin), least);
    if (!between) add(out, whole.substr(at, length), least);
    begin = at += length;
  }
  if (between) add(out, whole.substr(begin), least);
  return out;
}

void meaning(const Evaluation& e) {
  const TextPattern pattern = pattern_of(e.call);
  const bool between = e.call.flag("between");
  const int64_t least = fixed_integer(e.call, "least");
  std::vector<Parts> rows;
  size_t width = 0;
  for (const std::string_view each : texts_of(e)) {
    rows.push_back(tokens_of(each, pattern, between, least));
    width = std::max(width, rows.back().size());
  }
  write_parts(e, rows, width);
}

}  // namespace

OpDef define_text_tokens() {
  return {.name = "text_tokens",
          .doc =
              "The parts of texts that a pattern finds, or that stand between those, as spans of the same bytes; "
              "where a text has fewer, empty ones. Of what begins first the longest is found.",
          .inputs = text_inputs(),
          .attrs = {{"pattern", AttrKind::string, std::nullopt, "a regular expression, as text_match has them"},
                    {"between", AttrKind::boolean, false, "whether what the pattern finds stands between parts"},
                    {"least", AttrKind::integer, Dim(1), "the least characters of a part"},
                    found_size("parts", "the most parts of a text")},
          .outputs = {"spans", "counts"},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"text_tokens(u8[6], i64[2] {3, 12884901891}) {pattern = \".\", parts = width}",
                      "text_tokens(u8[6], i64[] {6}) {pattern = \"-|_\", between = true, least = 2, parts = width}"}};
}

}  // namespace hetnn::ops
