// scaled_dot_product_attention: softmax(q k^T scale + mask) v.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/exp_row.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/product.h"

namespace hetnn::ops {
namespace {

// q [B,H,L,D], k [B,H,S,D], v [B,H,S,E], mask bool (true: attend) or real (added), broadcast to [B,H,L,S].
std::vector<Type> infer(const Call& call) {
  const Type &q = call.input(0), &k = call.input(1), &v = call.input(2);
  if (q.shape.size() != 4 || k.shape.size() != 4 || v.shape.size() != 4 || q.shape[3] != k.shape[3] ||
      k.shape[2] != v.shape[2] || q.shape[0] != k.shape[0] || q.shape[1] != k.shape[1] || k.shape[0] != v.shape[0] ||
      k.shape[1] != v.shape[1]) {
    fail(call, "scaled_dot_product_attention_c1",
         text("q, k and v must be [B,H,L,D], [B,H,S,D] and [B,H,S,E]; got ", to_string(q.shape), ", ",
              to_string(k.shape), " and ", to_string(v.shape), ". Check heads and sizes."));
  }
  if (!is_real(q) || q.dtype != k.dtype || q.dtype != v.dtype) {
    fail(call, "scaled_dot_product_attention_c3",
         text("q, k and v must be real and of one element type; got ", to_string(q), ", ", to_string(k), " and ",
              to_string(v), ". Cast them."));
  }
  if (const std::string& undefined = call.string("undefined");
      undefined != "masked" && undefined != "kept" && undefined != "zeros")
    fail(call, "scaled_dot_product_attention_c6",
         text("undefined must be masked, kept or zeros; got '", undefined, "'."));
  if (const double scale = call.real("scale"); !std::isfinite(scale))
    fail(call, "scaled_dot_product_attention_c5", text("scale must be finite; got ", scale, "."));
  if (call.has(3)) {
    if (const DType mask = call.input(3).dtype; mask != DType::boolean && mask != q.dtype) {
      fail(call, "scaled_dot_product_attention_c4",
           text("mask must be bool or ", dtype_name(q.dtype), "; got ", dtype_name(mask), ". Cast it."));
    }
    const Shape scores = {q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
    const auto both = broadcast(call.input(3).shape, scores);
    if (!both || *both != scores) {
      fail(call, "scaled_dot_product_attention_c2",
           text("mask must broadcast to ", to_string(scores), "; got ", to_string(call.input(3).shape), "."));
    }
  }
  Shape y = q.shape;
  y[3] = v.shape[3];
  return {{q.dtype, y}};
}

constexpr double kNone = -std::numeric_limits<double>::infinity();

// What is added to the score of query i and key j.
class Mask {
 public:
  explicit Mask(const Evaluation& e) {
    if (!e.has(3)) return;
    const View &q = e.input(0), &k = e.input(1), &mask = e.input(3);
    const std::vector<int64_t> scores = {q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
    strides_ = broadcast_strides(mask.shape, scores);
    heads_ = q.shape[1];
    added_ = values_as<double>(mask);
    if (mask.dtype != DType::boolean) return;
    for (double& value : added_) value = value != 0 ? 0 : kNone;
  }
  double operator()(int64_t head, int64_t i, int64_t j) const {
    if (strides_.empty()) return 0;
    const int64_t at = head / heads_ * strides_[0] + head % heads_ * strides_[1] + i * strides_[2] + j * strides_[3];
    return added_[static_cast<size_t>(at)];
  }

 private:
  Strides strides_;
  int64_t heads_ = 0;
  std::vector<double> added_;
};

// Scores to weights, and their sum.
double exponentials(std::span<double> scores, bool exact, std::string_view undefined) {
  const double largest = largest_of(scores);
  const bool masked = largest == kNone && undefined != "kept";
  const double sum = masked ? 0 : exp_row(scores, largest, exact);
  if (masked || (std::isnan(sum) && undefined == "zeros")) {
    std::fill(scores.begin(), scores.end(), 0.0);
    return 1;
  }
  for (double& score : scores) score = score < 1e-303 ? 0 : score;  // a masked value may be infinite
  return sum;
}

void meaning(const Evaluation& e) {
  const View &q = e.input(0), &k = e.input(1), &v = e.input(2);
  const Result y = e.output();
  const int64_t heads = q.shape[0] * q.shape[1], rows = q.shape[2], depth = q.shape[3], keys = k.shape[2],
                width = v.shape[3];
  const double given = e.call.real("scale"),
               scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(depth, 1)));
  const bool causal = e.call.flag("is_causal");
  const std::string& undefined = e.call.string("undefined");
  const Mask mask(e);
  constexpr int64_t kRows = 64;  // of scores that are kept at a time
  std::vector<double> scores(static_cast<size_t>(kRows * keys)), sums(kRows);
  visit_wide_reals(q.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *queries = q.values<T>().data(), *keyed = k.values<T>().data(), *valued = v.values<T>().data();
    const auto none = [](int64_t, int64_t) { return 0.0; };
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t first = 0; first < rows; first += kRows) {
        const int64_t count = std::min(kRows, rows - first);
        multiply<double>(count, keys, depth, Matrix<T>{queries + (head * rows + first) * depth, depth, 1},
                         Matrix<T>{keyed + head * keys * depth, 1, depth}, none, [&](int64_t i, int64_t j, double dot) {
                           scores[static_cast<size_t>(i * keys + j)] =
                               causal && j > first + i ? kNone : dot * scale + mask(head, first + i, j);
                         });
        for (int64_t i = 0; i < count && keys > 0; ++i) {
          sums[static_cast<size_t>(i)] =
              exponentials({scores.data() + i * keys, static_cast<size_t>(keys)}, std::is_same_v<T, double>, undefined);
        }
        T* to = y.values<T>() + (head * rows + first) * width;
        multiply<double>(count, width, keys, Matrix<double>{scores.data(), keys, 1},
                         Matrix<T>{valued + head * keys * width, width, 1}, none,
                         [&](int64_t i, int64_t j, double sum) {
                           to[i * width + j] = static_cast<T>(keys > 0 ? sum / sums[static_cast<size_t>(i)] : 0);
                         });
      }
    }
  });
}

constexpr std::string_view kKept =
    "scaled_dot_product_attention(f32[1,2,n,8], f32[1,2,n,8], f32[1,2,n,8], bool[1,1,n,n]) {undefined = \"kept\"}";
constexpr std::string_view kZeros =
    "scaled_dot_product_attention(f32[1,2,n,8], f32[1,2,n,8], f32[1,2,n,8], bool[1,1,n,n]) {undefined = \"zeros\"}";

}  // namespace

OpDef define_scaled_dot_product_attention() {
  return {.name = "scaled_dot_product_attention",
          .doc = "Attention: y = softmax(q * k^T * scale + mask) * v, per image and head.",
          .inputs = {{"q", "[B,H,L,D]"},
                     {"k", "[B,H,S,D]"},
                     {"v", "[B,H,S,E]"},
                     {"mask", "bool or real, broadcasts to [B,H,L,S]", true}},
          .attrs =
              {{"is_causal", AttrKind::boolean, false, "whether row i attends to keys up to i only"},
               {"scale", AttrKind::real, 0.0, "factor of the scores; 0: 1/sqrt(D)"},
               {"undefined", AttrKind::string, std::string("masked"),
                "which rows whose softmax is NaN are zeros: masked (those with every key masked), kept (none), zeros"}},
          .traits = Trait::compute | Trait::wide,
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .work =
              [](const Call& call) {
                const Shape &q = call.input(0).shape, &v = call.input(2).shape;
                return Work{.macs = q[0] * q[1] * q[2] * v[2] * (q[3] + v[3])};
              },
          .keeps_batch = keeps_batch_of_all,
          .constraints = {},
          .tolerance = 1e-5,
          .samples = {
              "scaled_dot_product_attention(f32[2,3,5,8], f32[2,3,7,8], f32[2,3,7,4])",
              "scaled_dot_product_attention(f32[1,2,n,8], f32[1,2,n,8], f32[1,2,n,8], bool[1,1,n,n])",
              "scaled_dot_product_attention(f32[1,2,4,8], f32[1,2,4,8], f32[1,2,4,8]) {is_causal = true, scale = 0.5}",
              kKept, kZeros}};
}

}  // namespace hetnn::ops
