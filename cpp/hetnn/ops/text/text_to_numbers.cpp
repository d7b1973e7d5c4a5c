// text_to_numbers: numbers that texts spell.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_text(call);
  const DType to = call.dtype("to");
  if (!is_wide_number(to))
    fail(call, "text_to_numbers_c3", text("numbers are read as f32, f64, i64 or u64; got ", dtype_name(to), "."));
  return {{to, call.input(1).shape}};
}

bool is_called(std::string_view text, std::string_view upper) {
  return std::ranges::equal(text, upper, {},
                            [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
}

// All of the text as a number; what is too small for its type is 0, what is too large is infinite.
template <typename T>
std::optional<T> spelled(std::string_view text) {
  T out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {
      const size_t exponent = text.find_first_of("eE");
      const bool small = exponent != text.npos && text.substr(exponent + 1).starts_with('-');
      const T magnitude = small ? T(0) : std::numeric_limits<T>::infinity();
      return text.starts_with('-') ? -magnitude : magnitude;
    }
  }
  return error == std::errc() ? std::optional(out) : std::nullopt;
}

std::string_view without_spaces(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r\f\v";
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

template <typename T>
std::optional<T> number_in(std::string_view text) {
  text = without_spaces(text);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-' && text[1] != '+') text.remove_prefix(1);
  if constexpr (std::is_floating_point_v<T>) {
    const bool negative = text.starts_with('-');
    const std::string_view name = text.substr(negative ? 1 : 0);
    if (is_called(name, "INF") || is_called(name, "INFINITY"))
      return (negative ? -1 : 1) * std::numeric_limits<T>::infinity();
    if (is_called(name, "NAN")) return std::numeric_limits<T>::quiet_NaN();
    return spelled<T>(text);
  } else {
    if (const std::optional<T> whole = spelled<T>(text)) return whole;
    // Of 100.5 and 1e3 the whole part.
    const std::optional<double> real = spelled<double>(text);
    const double least = static_cast<double>(std::numeric_limits<T>::min());
    if (!real || !std::isfinite(*real) || std::trunc(*real) < least ||
        *real >= std::ldexp(1.0, std::numeric_limits<T>::digits))
      return std::nullopt;
    return static_cast<T>(*real);
  }
}

void meaning(const Evaluation& e) {
  const DType to = e.call.dtype("to");
  visit_wide_number(to, [&](auto zero) {
    using T = decltype(zero);
    T* out = e.output().values<T>();
    for (const std::string_view each : texts_of(e)) {
      const std::optional<T> number = number_in<T>(each);
      if (!number) {
        fail(e.call, "text_to_numbers_c4",
             text("'", each.substr(0, 40), "' is no number of ", dtype_name(to),
                  ". Give texts such as 12, -0.5 or 1e-5."));
      }
      *out++ = *number;
    }
  });
}

}  // namespace

OpDef define_text_to_numbers() {
  return {
      .name = "text_to_numbers",
      .doc =
          "The numbers that texts spell, plainly or with an exponent, in spaces or not; of integers the whole part. "
          "NaN, INF and -INF in any case (ONNX Cast).",
      .inputs = text_inputs(),
      .attrs = {{"to", AttrKind::dtype, std::nullopt, "f32, f64, i64 or u64"}},
      .outputs = {"numbers"},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"text_to_numbers(u8[4] {49, 46, 53, 55}, i64[2] {3, 12884901889}) {to = f32}",
                  "text_to_numbers(u8[3] {45, 49, 50}, i64[1] {3}) {to = i64}"}};
}

}  // namespace hetnn::ops
