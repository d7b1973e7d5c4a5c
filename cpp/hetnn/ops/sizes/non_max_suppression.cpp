// non_max_suppression: the best boxes of those that overlap.
#include <algorithm>
#include <limits>
#include <numeric>

#include "hetnn/base/convert.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

// boxes [N,S,4], scores [N,C,S] -> y [count,3].
std::vector<Type> infer(const Call& call) {
  const Type &boxes = call.input(0), &scores = call.input(1);
  const bool shapes = boxes.rank() == 3 && scores.rank() == 3 && boxes.shape[2] == Dim(4) &&
                      boxes.shape[0] == scores.shape[0] && boxes.shape[1] == scores.shape[2];
  if (!shapes || !is_float(boxes.dtype) || boxes.dtype != scores.dtype) {
    fail(call, "non_max_suppression_c1",
         text("boxes must be reals [N,S,4] and scores [N,C,S] of one element type; got ", to_string(boxes), " and ",
              to_string(scores), "."));
  }
  for (size_t k = 2; k < 5; ++k) {
    if (!call.has(k) || elements(call.input(k).shape) == Dim(1)) continue;
    fail(call, "non_max_suppression_c2",
         text(call.op->inputs[k].name, " must hold one number; got ", to_string(call.input(k)), "."));
  }
  return {{DType::i64, {call.integer("count"), 3}}};
}

struct Box {
  double left, top, right, bottom;
  double area() const { return (right - left) * (bottom - top); }
};

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left),
               height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (!(width > 0 && height > 0)) return 0;
  const double both = width * height;
  return both / (a.area() + b.area() - both);
}

template <typename T>
std::vector<Box> boxes_of(const T* values, int64_t count, bool centered) {
  std::vector<Box> out;
  out.reserve(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k, values += 4) {
    const double a = values[0], b = values[1], c = values[2], d = values[3];
    if (centered) {
      out.push_back({a - c / 2, b - d / 2, a + c / 2, b + d / 2});
    } else {  // any two opposite corners
      out.push_back({std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)});
    }
  }
  return out;
}

template <typename R>
R number(const Evaluation& e, size_t index, R otherwise) {
  if (!e.has(index)) return otherwise;
  return values_as<R>(e.input(index))[0];
}

void meaning(const Evaluation& e) {
  const View &boxes = e.input(0), &scores = e.input(1);
  const int64_t images = scores.shape[0], classes = scores.shape[1], size = scores.shape[2];
  const auto most = number<int64_t>(e, 2, std::numeric_limits<int64_t>::max());
  const auto most_overlap = number<double>(e, 3, 0), least = number<double>(e, 4, 0);
  std::vector<int64_t> rows;
  visit_wide_reals(boxes.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* corners = boxes.values<T>().data();
    const auto* score = scores.values<T>().data();
    for (int64_t image = 0; image < images; ++image) {
      const std::vector<Box> all = boxes_of(corners + image * size * 4, size, e.call.flag("centered"));
      for (int64_t c = 0; c < classes; ++c, score += size) {
        std::vector<int64_t> order;
        for (int64_t k = 0; k < size; ++k) {
          if (!e.has(4) || static_cast<double>(score[k]) > least) order.push_back(k);
        }
        // The best first; NaN is no good.
        const auto better = [&](int64_t a, int64_t b) {
          const T x = score[a], y = score[b];
          return x > y || (x == x && y != y);
        };
        std::stable_sort(order.begin(), order.end(), better);
        std::vector<int64_t> kept;
        for (const int64_t k : order) {
          if (static_cast<int64_t>(kept.size()) >= most) break;
          const auto hides = [&](int64_t other) {
            return overlap(all[static_cast<size_t>(other)], all[static_cast<size_t>(k)]) > most_overlap;
          };
          if (std::none_of(kept.begin(), kept.end(), hides)) kept.push_back(k);
        }
        for (const int64_t k : kept) rows.insert(rows.end(), {image, c, k});
      }
    }
  });
  const auto count = static_cast<int64_t>(rows.size()) / 3;
  define(e, "count", count);
  std::ranges::copy(rows, e.output(0, {count, 3}).values<int64_t>());
}

}  // namespace

OpDef define_non_max_suppression() {
  return {
      .name = "non_max_suppression",
      .doc =
          "Of every image and class the boxes by falling score, but for those whose intersection with one before "
          "is more than a part of their union: rows of image, class and box.",
      .inputs = {{"boxes", "[N,S,4]: two opposite corners each, or center and size"},
                 {"scores", "[N,C,S]"},
                 {"most", "the most boxes of an image and class; absent: any number", true},
                 {"overlap", "the largest part that two boxes may share; absent: 0", true},
                 {"least", "boxes of no better score are left out; absent: none is", true}},
      .attrs = {{"centered", AttrKind::boolean, false, "whether boxes are x, y, width, height about their center"},
                found_size("count", "the number of rows")},
      .traits = static_cast<uint32_t>(Trait::wide),
      .torch = {},
      .onnx = {},
      .infer = infer,
      .meaning = meaning,
      .constraints = {},
      .tolerance = 0,
      .samples = {"non_max_suppression(f32[1,6,4], f32[1,2,6], i64[] {2}, f32[] {0.5}, _) {count = found}",
                  "non_max_suppression(f32[2,n,4], f32[2,1,n], _, f32[] {0.3}, f32[1] {0.1}) {centered = true, count = "
                  "found}"}};
}

}  // namespace hetnn::ops
