// range_over: evenly spaced numbers between bounds that inputs hold.
#include <cmath>

#include "hetnn/ops/late.h"

namespace hetnn::ops {
namespace {

// Longer ranges are a mistake.
constexpr double kMost = 1 << 28;

std::vector<Type> infer(const Call& call) {
  const Type& start = call.input(0);
  for (size_t k = 0; k < 3; ++k) {
    const Type& each = call.input(k);
    if (each.dtype != start.dtype || elements(each.shape) != Dim(1) || each.dtype == DType::boolean) {
      fail(call, "range_over_c1",
           text("start, end and step must be one number each, of one type; got ", to_string(start), " and ",
                to_string(each), "."));
    }
  }
  return {{start.dtype, call.integers("sizes")}};
}

// How many of start, start + step, ... lie before end: of integers exactly, also where f64 does not hold them.
template <typename T>
double numbers_before(T end, T start, T step) {
  if constexpr (std::is_integral_v<T>) {
    const bool up = step > T(0);
    if (up ? end <= start : end >= start) return 0;
    const auto wide = [](T x) { return static_cast<uint64_t>(x); };
    const uint64_t gap = up ? wide(end) - wide(start) : wide(start) - wide(end),
                   pace = up ? wide(step) : 0 - wide(step);
    const uint64_t count = gap / pace + (gap % pace == 0 ? 0 : 1);
    return static_cast<double>(count);
  } else {
    return std::ceil((static_cast<double>(end) - static_cast<double>(start)) / static_cast<double>(step));
  }
}

void meaning(const Evaluation& e) {
  visit_wide(e.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto read = [&](size_t k) { return e.input(k).values<T>()[0]; };
    const T start = read(0), end = read(1), step = read(2);
    const double count = step == T(0) ? 0 : numbers_before(end, start, step);
    if (step == T(0) || !(count <= kMost)) {
      fail(e.call, "range_over_c2",
           text("a range from ", +start, " to ", +end, " by ", +step, " has no end or more than ", kMost, " numbers."));
    }
    const auto size = static_cast<int64_t>(std::max(count, 0.0));
    T* y = late_output(e, {size}).template values<T>();
    for (int64_t k = 0; k < size; ++k) y[k] = static_cast<T>(start + static_cast<T>(k) * step);
  });
}

}  // namespace

OpDef define_range_over() {
  return {.name = "range_over",
          .doc =
              "start, start + step, ... as long as they are before end; "
              "bounds that are known at run time.",
          .inputs = {{"start", "one number"}, {"end", "one number"}, {"step", "one number, not 0"}},
          .attrs = {sizes_attr()},
          .traits = static_cast<uint32_t>(Trait::wide),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"range_over(i64[] {2}, i64[] {11}, i64[] {3}) {sizes = [3]}",
                      "range_over(f32[] {1}, f32[] {-1}, f32[] {-0.5}) {sizes = [4]}"}};
}

}  // namespace hetnn::ops
