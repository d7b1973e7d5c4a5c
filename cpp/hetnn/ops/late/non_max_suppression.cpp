// non_max_suppression: the boxes of every class that no better one covers.
#include <algorithm>
#include <numeric>

#include "hetnn/ops/late/late.h"
#include "hetnn/ops/widened.h"

namespace hetnn::ops {
namespace {

// boxes [N,B,4], scores [N,C,B] -> y [count,3].
std::vector<Type> infer(const Call& call) {
  const Type &boxes = call.input(0), &scores = call.input(1);
  if (boxes.rank() != 3 || scores.rank() != 3 || !is_float(boxes.dtype) || scores.dtype != boxes.dtype ||
      boxes.shape[2] != Dim(4) || boxes.shape[0] != scores.shape[0] || boxes.shape[1] != scores.shape[2]) {
    fail(call, "non_max_suppression_c1",
         text("boxes must be [N,B,4] and scores [N,C,B] of one real type; got ", to_string(boxes), " and ",
              to_string(scores), "."));
  }
  for (size_t k = 2; k < 5; ++k) {
    if (call.has(k) &&
        (elements(call.input(k).shape) != Dim(1) || call.input(k).dtype != (k == 2 ? DType::i64 : boxes.dtype))) {
      fail(call, "non_max_suppression_c2",
           text("'", call.op->inputs[k].name, "' must be one ", k == 2 ? "i64" : dtype_name(boxes.dtype), "; got ",
                to_string(call.input(k)), "."));
    }
  }
  return {{DType::i64, call.integers("sizes")}};
}

struct Box {
  double low[2], high[2];
  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

bool covers(const Box& a, const Box& b, double limit) {
  double both = 1;
  for (int k = 0; k < 2; ++k) both *= std::max(std::min(a.high[k], b.high[k]) - std::max(a.low[k], b.low[k]), 0.0);
  return both > 0 && a.area() > 0 && b.area() > 0 && both / (a.area() + b.area() - both) > limit;
}

template <typename T>
std::vector<int64_t> chosen(const Evaluation& e) {
  const Widened<T> boxes(e.input(0)), scores(e.input(1));
  const auto real = [&](size_t k, double preset) {
    return e.has(k) ? static_cast<double>(static_cast<Wide<T>>(e.input(k).values<T>()[0])) : preset;
  };
  const int64_t most = e.has(2) ? e.input(2).values<int64_t>()[0] : 0;
  const double limit = real(3, 0), least = real(4, 0);
  const int64_t batches = e.input(1).shape[0], classes = e.input(1).shape[1], count = e.input(1).shape[2];
  std::vector<int64_t> out, order;
  std::vector<Box> all(static_cast<size_t>(count));
  for (int64_t n = 0; n < batches; ++n) {
    for (int64_t b = 0; b < count; ++b) {
      Box& box = all[static_cast<size_t>(b)];
      for (int64_t k = 0; k < 2; ++k) {
        const auto one = static_cast<double>(boxes[(n * count + b) * 4 + k]);
        const auto two = static_cast<double>(boxes[(n * count + b) * 4 + 2 + k]);
        const bool centre = e.call.flag("centres");
        box.low[k] = centre ? one - two / 2 : std::min(one, two);
        box.high[k] = centre ? one + two / 2 : std::max(one, two);
      }
    }
    for (int64_t c = 0; c < classes; ++c) {
      const auto score = [&](int64_t b) { return static_cast<double>(scores[(n * classes + c) * count + b]); };
      order.clear();
      for (int64_t b = 0; b < count; ++b) {
        if (!e.has(4) || score(b) > least) order.push_back(b);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score(a) > score(b); });
      std::vector<int64_t> kept;
      for (const int64_t b : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        const bool covered = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
          return covers(all[static_cast<size_t>(k)], all[static_cast<size_t>(b)], limit);
        });
        if (!covered) kept.push_back(b);
      }
      for (const int64_t b : kept) out.insert(out.end(), {n, c, b});
    }
  }
  return out;
}

void meaning(const Evaluation& e) {
  std::vector<int64_t> found;
  visit_dtype(e.input(0).dtype, [&](auto zero) {
    if constexpr (kIsFloat<decltype(zero)>) found = chosen<decltype(zero)>(e);
  });
  const auto count = static_cast<int64_t>(found.size() / 3);
  std::copy(found.begin(), found.end(), late_output(e, {count, 3}).values<int64_t>());
}

}  // namespace

OpDef define_non_max_suppression() {
  return {.name = "non_max_suppression",
          .doc =
              "Of every image and class the boxes, by falling scores, that "
              "overlap no better one by more than a limit "
              "of intersection over union: rows of image, class, box.",
          .inputs = {{"boxes", "[N,B,4]: two corners, or centre and size"},
                     {"scores", "[N,C,B]"},
                     {"most", "one i64: boxes of a class; absent: 0", true},
                     {"limit", "one real; absent: 0", true},
                     {"least", "one real, above which scores must be; absent: any", true}},
          .attrs = {{"centres", AttrKind::boolean, false, "whether boxes are centre and size"}, sizes_attr()},
          .onnx = {"NonMaxSuppression"},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"non_max_suppression(f32[1,5,4], f32[1,2,5], i64[] {0}, f32[] {0.5}, f32[] {0}) {sizes = [0,3]}",
                      "non_max_suppression(f32[1,2,4] {0.5, 0.5, 1, 1, 0.5, 0.5, 1, 0.9}, f32[1,1,2] {0.5, 0.9}, "
                      "i64[1] {2}, f32[] {0.5}, _) {centres = true, sizes = [1,3]}"}};
}

}  // namespace hetnn::ops
