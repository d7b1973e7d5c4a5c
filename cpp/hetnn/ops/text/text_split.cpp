// text_split: the parts of texts between delimiters.
#include <algorithm>

#include "hetnn/ops/sizes.h"
#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_text(call);
  fixed_integer(call, "most");
  Shape parts = call.input(1).shape;
  parts.push_back(call.integer("parts"));
  return {{DType::i64, parts}, {DType::i64, call.input(1).shape}};
}

std::string_view without_spaces(std::string_view rest) {
  while (!rest.empty()) {
    std::string_view behind = rest;
    if (!is_space(next_character(behind))) break;
    rest = behind;
  }
  return rest;
}

// Parts between runs of white space, at most `most` splits.
std::vector<std::string_view> words_of(std::string_view rest, int64_t most) {
  std::vector<std::string_view> out;
  for (rest = without_spaces(rest); !rest.empty(); rest = without_spaces(rest)) {
    if (static_cast<int64_t>(out.size()) == most) {
      out.push_back(rest);
      break;
    }
    std::string_view behind = rest;
    size_t length = 0;
    while (!behind.empty() && !is_space(next_character(behind))) length = rest.size() - behind.size();
    out.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return out;
}

std::vector<std::string_view> parts_of(std::string_view rest, const std::string& delimiter, int64_t most) {
  std::vector<std::string_view> out;
  for (size_t at = rest.find(delimiter); at != rest.npos && static_cast<int64_t>(out.size()) < most;
       at = rest.find(delimiter)) {
    out.push_back(rest.substr(0, at));
    rest.remove_prefix(at + delimiter.size());
  }
  out.push_back(rest);
  return out;
}

void meaning(const Evaluation& e) {
  const std::string& delimiter = e.call.string("delimiter");
  const int64_t given = e.call.integer("most").value(), most = given < 0 ? INT64_MAX : given;
  std::vector<std::vector<std::string_view>> rows;
  size_t width = 0;
  for (const std::string_view each : texts_of(e)) {
    rows.push_back(delimiter.empty() ? words_of(each, most) : parts_of(each, delimiter, most));
    width = std::max(width, rows.back().size());
  }
  write_parts(e, rows, width);
}

}  // namespace

OpDef define_text_split() {
  return {
      .name = "text_split",
      .doc = "The parts of texts between delimiters, as spans of the same bytes; where a text has fewer, empty ones.",
      .inputs = text_inputs(),
      .attrs = {{"delimiter", AttrKind::string, std::string(), "what stands between parts; empty: white space"},
                {"most", AttrKind::integer, Dim(-1), "the most splits of a text; negative: any number"},
                found_size("parts", "the most parts of a text")},
      .outputs = {"spans", "counts"},
      .onnx = {{"StringSplit"}},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"text_split(u8[6], i64[2] {3, 12884901891}) {parts = width}",
                  "text_split(u8[6], i64[] {6}) {delimiter = \"-\", most = 1, parts = width}"}};
}

}  // namespace hetnn::ops
