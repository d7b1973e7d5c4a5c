// Reductions against plain loops.
#include "../kernel_runner.h"
#include "expect_error.h"

namespace hetnn::kernels::testing {
namespace {

// Elements of x that fall to each output, in logical order.
std::vector<std::vector<double>> groups_of(const Tensor& x, const std::vector<int64_t>& axes,
                                           std::vector<int64_t>* kept) {
  std::vector<bool> reduced(static_cast<size_t>(x.view.rank), axes.empty());
  for (const int64_t axis : axes) reduced[static_cast<size_t>(axis)] = true;
  int64_t outputs = 1;
  for (int axis = 0; axis < x.view.rank; ++axis) {
    const int64_t dim = x.view.dims[static_cast<size_t>(axis)];
    kept->push_back(reduced[static_cast<size_t>(axis)] ? 1 : dim);
    outputs *= kept->back();
  }
  std::vector<std::vector<double>> groups(static_cast<size_t>(outputs));
  for (int64_t i = 0; i < x.view.elems(); ++i) {
    int64_t rest = i, to = 0, step = 1;
    for (int axis = x.view.rank - 1; axis >= 0; --axis) {
      const int64_t dim = x.view.dims[static_cast<size_t>(axis)];
      if (!reduced[static_cast<size_t>(axis)]) {
        to += rest % dim * step;
        step *= dim;
      }
      rest /= dim;
    }
    groups[static_cast<size_t>(to)].push_back(x.values[static_cast<size_t>(i)]);
  }
  return groups;
}

double reduce_group(const std::string& op, const std::vector<double>& values) {
  double sum = 0, product = 1;
  size_t best = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    product *= values[i];
    const bool better = op == "reduce_max" || op == "argmax" ? values[i] > values[best] : values[i] < values[best];
    if (!std::isnan(values[best]) && (std::isnan(values[i]) || better)) best = i;
  }
  if (op == "sum") return sum;
  if (op == "mean") return sum / static_cast<double>(values.size());
  if (op == "prod") return product;
  if (op == "reduce_max" || op == "reduce_min") return values[best];
  return static_cast<double>(best);
}

TEST(Reduce, EveryOpOverEveryChoiceOfAxesAndLayout) {
  const std::vector<std::vector<int64_t>> choices = {{}, {0}, {1}, {3}, {2, 3}, {1, 2, 3}, {0, 2, 3}, {0, 1}, {1, 3}};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 37, 3, 5}, {3, 4, 6, 40}})
    for (const std::string op : {"sum", "mean", "reduce_max", "reduce_min", "prod", "argmax", "argmin"})
      for (const auto& axes : choices)
        for (const bool nhwc : {false, true})
          for (const bool keep : {false, true}) {
            const bool arg = op[0] == 'a';
            if (arg && axes.size() > 1) continue;
            const Tensor x = nhwc ? random_nhwc(shape, 1, 2) : random_plain(shape, 1);
            std::vector<int64_t> kept;
            std::vector<double> expected;
            for (const auto& group : groups_of(x, axes, &kept)) expected.push_back(reduce_group(op, group));
            if (!keep) {
              std::vector<int64_t> squeezed;
              for (size_t axis = 0; axis < kept.size(); ++axis)
                if (!axes.empty() && std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) == axes.end())
                  squeezed.push_back(kept[axis]);
              kept = squeezed;
            }
            const DType dtype = arg ? DType::i64 : DType::f32;
            const TensorView y = nhwc && keep ? TensorView::nhwc(dtype, kept) : TensorView::plain(dtype, kept);
            check_kernel("reduce", {x}, {y}, {{"op", op}, {"axes", axes}}, {expected}, arg ? 0 : 1e-6, "reduce " + op);
            if (HasFatalFailure()) return;
          }
}

TEST(Reduce, NanWins) {
  Tensor x = random_plain({2, 50}, 1);
  x.values[70] = std::nan("");
  for (const std::string op : {"reduce_max", "reduce_min", "sum"}) {
    const auto y = run_kernel("reduce", {x}, {TensorView::plain(DType::f32, std::vector<int64_t>{2})},
                              {{"op", op}, {"axes", std::vector<int64_t>{1}}})[0];
    EXPECT_FALSE(std::isnan(y[0])) << op;
    EXPECT_TRUE(std::isnan(y[1])) << op;
  }
  check_kernel("reduce", {x}, {TensorView::plain(DType::i64, std::vector<int64_t>{1, 50})},
               {{"op", "argmax"}, {"axes", std::vector<int64_t>{0}}}, {[&] {
                 std::vector<double> expected;
                 for (size_t i = 0; i < 50; ++i)
                   expected.push_back(std::isnan(x.values[50 + i]) || x.values[50 + i] > x.values[i] ? 1 : 0);
                 return expected;
               }()},
               0, "argmax");
}

TEST(Reduce, IntegersAndBools) {
  const Tensor x = plain({2, 3}, {3, -1, 4, 1, 5, -9}, DType::i64);
  const auto check = [&](const Tensor& in, const std::string& op, DType out, std::vector<double> expected) {
    check_kernel("reduce", {in}, {TensorView::plain(out, std::vector<int64_t>{2})},
                 {{"op", op}, {"axes", std::vector<int64_t>{-1}}}, {expected}, 0, op);
  };
  check(x, "sum", DType::i64, {6, -3});
  check(x, "prod", DType::i64, {-12, -45});
  check(x, "reduce_max", DType::i64, {4, 5});
  check(x, "argmin", DType::i64, {1, 2});
  const Tensor flags = plain({2, 3}, {1, 1, 0, 1, 1, 1}, DType::boolean);
  check(flags, "all", DType::boolean, {0, 1});
  check(flags, "any", DType::boolean, {1, 1});
  check(flags, "sum", DType::i64, {2, 3});
}

// Rows and columns, side by side or with gaps between the outputs: a sum with a full operand, then one value a channel.
TEST(Reduce, StepsFollow) {
  const std::vector<int64_t> shape = {2, 5, 4, 24};
  for (const std::string op : {"sum", "mean", "reduce_max", "reduce_min", "prod"})
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{3}, {1}, {2, 3}, {0, 2}, {1, 2, 3}, {0, 1, 2, 3}})
      for (const bool nhwc : {false, true}) {
        const Tensor x = nhwc ? random_nhwc(shape, 1, 3) : random_plain(shape, 1);
        std::vector<int64_t> reduced = shape;
        for (const int64_t axis : axes) reduced[static_cast<size_t>(axis)] = 1;
        const TensorView y =
            nhwc ? TensorView::nhwc(DType::f32, reduced, reduced[1] + 2) : TensorView::plain(DType::f32, reduced);
        const Tensor full = random_plain(reduced, 2), channels = random_plain({1, reduced[1], 1, 1}, 3);
        auto expected = meaning(op, {x}, {{"axes", dims_of(axes)}, {"keepdim", true}});
        const size_t pixels = static_cast<size_t>(reduced[2] * reduced[3]);
        for (size_t i = 0; i < expected.size(); ++i) {
          expected[i] = 2 * full.values[i] - expected[i];
          expected[i] *= channels.values[i / pixels % static_cast<size_t>(reduced[1])];
        }
        check_kernel("reduce", {x, full, channels}, {y}, {{"op", op}, {"axes", axes}}, {expected}, 1e-5,
                     op + " with steps", {{"sum", 1, {-1, 2}}, {"mul", 2, {}}});
        if (HasFatalFailure()) return;
      }
}

TEST(Reduce, LongSumsStayAccurate) {
  const int64_t n = 1 << 18;
  const Tensor x = plain({n}, std::vector<double>(static_cast<size_t>(n), static_cast<double>(0.1f)));
  check_kernel("reduce", {x}, {TensorView::plain(DType::f32, {})}, {{"op", "sum"}},
               {{static_cast<double>(0.1f) * static_cast<double>(n)}}, 1e-6, "row");
  Tensor columns{TensorView::plain(DType::f32, std::vector<int64_t>{n / 8, 8}), x.values};
  check_kernel("reduce", {columns}, {TensorView::plain(DType::f32, std::vector<int64_t>{8})},
               {{"op", "sum"}, {"axes", std::vector<int64_t>{0}}},
               {std::vector<double>(8, static_cast<double>(0.1f) * static_cast<double>(n / 8))}, 5e-5, "columns");
}

TEST(Reduce, EmptyExtremesAreRefused) {
  const Tensor x = plain({0, 3}, {});
  EXPECT_ERROR(run_kernel("reduce", {x}, {TensorView::plain(DType::f32, std::vector<int64_t>{3})},
                          {{"op", "reduce_max"}, {"axes", std::vector<int64_t>{0}}}),
               Unsupported, "reduce_max chooses among one element or more; got [0,3] plain");
  check_kernel("reduce", {x}, {TensorView::plain(DType::f32, std::vector<int64_t>{3})},
               {{"op", "sum"}, {"axes", std::vector<int64_t>{0}}}, {{0, 0, 0}}, 0, "empty sum");
}

}  // namespace
}  // namespace hetnn::kernels::testing
