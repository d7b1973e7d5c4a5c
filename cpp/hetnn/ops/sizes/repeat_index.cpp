// repeat_index: every index as often as a tensor says.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/scatter/elements.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

// repeats [S] -> y [count].
std::vector<Type> infer(const Call& call) {
  const Type& repeats = call.input(0);
  if (!holds_indices(repeats) || repeats.rank() != 1) {
    fail(call, "repeat_index_c1", text("repeats must be i64 or i32 of rank 1; got ", to_string(repeats), "."));
  }
  return {{repeats.dtype, {call.integer("count")}}};
}

void meaning(const Evaluation& e) {
  const View& repeats = e.input(0);
  const auto repeat = [&](const auto values) {
    using T = std::remove_cvref_t<decltype(values[0])>;
    int64_t count = 0;
    for (const int64_t times : values) {
      if (times < 0) {
        fail(e.call, "repeat_index_c2", text("repeats must not be negative; got ", times, ". Check the values."));
      }
      if (__builtin_add_overflow(count, times, &count)) {
        fail(e.call, "repeat_index_c3", "repeats must add up to a 64-bit integer. Check the values.");
      }
    }
    define(e, "count", count);
    T* to = e.output(0, {count}).template values<T>();
    for (size_t k = 0; k < values.size(); ++k) to = std::fill_n(to, values[k], static_cast<T>(k));
  };
  repeats.dtype == DType::i64 ? repeat(repeats.values<int64_t>()) : repeat(repeats.values<int32_t>());
}

}  // namespace

OpDef define_repeat_index() {
  return {.name = "repeat_index",
          .doc = "Every index of repeats, in order, as often as repeats says there.",
          .inputs = {{"repeats", "i64 or i32 of rank 1, not negative"}},
          .attrs = {found_size("count", "the sum of repeats")},
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"repeat_index(i64[4] {2, 0, 1, 3}) {count = found}",
                      "repeat_index(i32[3] {0, 0, 2}) {count = found}"}};
}

}  // namespace hetnn::ops
