// numbers_to_text: numbers written out.
#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (!is_wide_number(x.dtype))
    fail(call, "numbers_to_text_c1", text("x must be f32, f64, i64 or u64; got ", to_string(x), ". Cast it."));
  return text_types(call, x.shape);
}

template <typename T>
std::string written(T number) {
  std::array<char, 512> digits;  // the least f64 has 326
  std::to_chars_result end;
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-INF" : "INF";
    end = std::to_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::fixed);
  } else {
    end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  }
  return {digits.data(), end.ptr};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  std::vector<std::string> out;
  visit_wide_number(x.dtype, [&](auto zero) {
    for (const auto number : x.values<decltype(zero)>()) out.push_back(written(number));
  });
  write_texts(e, out, {x.shape.begin(), x.shape.end()});
}

}  // namespace

OpDef define_numbers_to_text() {
  return {.name = "numbers_to_text",
          .doc =
              "Numbers as texts: all digits without an exponent, as few as read back as the same number; NaN, INF and "
              "-INF (ONNX Cast).",
          .inputs = {{"x", "f32, f64, i64 or u64, any shape"}},
          .attrs = {text_total()},
          .outputs = {"bytes", "spans"},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"numbers_to_text(i64[3] {12, -7, 0}) {total = size}",
                      "numbers_to_text(f32[2] {0.5, -20.25}) {total = 9}"}};
}

}  // namespace hetnn::ops
