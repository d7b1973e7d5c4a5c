// unary, binary, where and cast against the scalar meaning of every op.
#include "../kernel_runner.h"
#include "hetnn/kernels/elementwise/scalar_ops.h"

namespace hetnn::kernels::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct UnaryCase {
  std::string op;
  std::vector<double> values;
  double tolerance;
  double low = -6, high = 6;
};

const std::vector<UnaryCase> kUnaryCases = {{"identity", {}, 0},
                                            {"relu", {}, 0},
                                            {"clip", {-0.5, 2.0}, 0},
                                            {"leaky_relu", {0.125}, 0},
                                            {"elu", {0.75}, 1e-6},
                                            {"silu", {}, 1e-6},
                                            {"hardswish", {}, 1e-6},
                                            {"hardsigmoid", {}, 1e-6},
                                            {"sigmoid", {}, 1e-6},
                                            {"tanh", {}, 1e-6},
                                            {"gelu", {}, 1e-6},
                                            {"gelu_tanh", {}, 1e-6},
                                            {"mish", {}, 1e-6},
                                            {"softplus", {}, 1e-6},
                                            {"abs", {}, 0},
                                            {"neg", {}, 0},
                                            {"square", {}, 1e-7},
                                            {"sqrt", {}, 1e-7, 0, 50},
                                            {"rsqrt", {}, 1e-6, 1, 9},
                                            {"reciprocal", {}, 1e-6, 0.5, 9},
                                            {"exp", {}, 1e-6, -5, 5},
                                            {"log", {}, 1e-6, 0.1, 9},
                                            {"sin", {}, 1e-6},
                                            {"cos", {}, 1e-6},
                                            {"erf", {}, 1e-6},
                                            {"floor", {}, 0},
                                            {"ceil", {}, 0},
                                            {"round", {}, 0},
                                            {"sign", {}, 0},
                                            {"scale", {1.5}, 1e-7},
                                            {"shift", {-0.5}, 1e-7}};

TEST(Unary, EveryOpMatchesItsScalarMeaning) {
  for (const UnaryCase& c : kUnaryCases)
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {37}, {2, 5, 3, 7}, {4100}}) {
      Tensor x = random_plain(shape, 7);
      x.values = random_values(x.view.elems(), 7, c.low, c.high);
      x.values[0] = 0.75 * c.high;  // an ordinary magnitude, against which tolerances are measured
      std::vector<double> expected;
      const double v0 = c.values.empty() ? 0 : c.values[0], v1 = c.values.size() < 2 ? 0 : c.values[1];
      for (const double v : x.values) expected.push_back(scalar_unary(*block_op_from_name(c.op), v, v0, v1));
      check_kernel("unary", {x}, {x.view}, {{"op", c.op}, {"values", c.values}}, {expected}, c.tolerance, c.op);
      if (shape.size() == 4) {
        const Tensor nhwc{TensorView::nhwc(DType::f32, shape, shape[1] + 3), x.values};
        check_kernel("unary", {nhwc}, {TensorView::nhwc(DType::f32, shape)}, {{"op", c.op}, {"values", c.values}},
                     {expected}, c.tolerance, c.op + " nhwc");
        check_kernel("unary", {nhwc}, {x.view}, {{"op", c.op}, {"values", c.values}}, {expected}, c.tolerance,
                     c.op + " nhwc to plain");
      }
      if (HasFatalFailure()) return;
    }
}

TEST(Unary, EdgeValuesActAsInTorch) {
  const double nan = std::nan("");
  const double tiny = static_cast<double>(1e-40f);
  const std::vector<double> x = {nan, kInf, -kInf, -0.0, 100, -100, tiny};
  const auto run = [&](const std::string& op) {
    return run_kernel("unary", {plain({7}, x)}, {TensorView::plain(DType::f32, std::vector<int64_t>{7})},
                      {{"op", op}})[0];
  };
  for (const std::string& isa : available_isas()) {
    restrict_isa(isa);
    expect_close(run("relu"), {nan, kInf, 0, 0, 100, 0, tiny}, 0, "relu on " + isa);
    expect_close(run("relu6"), {nan, 6, 0, 0, 6, 0, tiny}, 0, "relu6 on " + isa);
    expect_close(run("sigmoid"), {nan, 1, 0, 0.5, 1, 0, 0.5}, 1e-7, "sigmoid on " + isa);
    expect_close(run("tanh"), {nan, 1, -1, 0, 1, -1, tiny}, 1e-7, "tanh on " + isa);
    expect_close(run("exp"), {nan, kInf, 0, 1, kInf, 0, 1}, 1e-7, "exp on " + isa);
    expect_close(run("gelu"), {nan, kInf, nan, 0, 100, 0, 5e-41}, 1e-7, "gelu on " + isa);
    expect_close(run("silu"), {nan, kInf, nan, 0, 100, 0, 5e-41}, 1e-7, "silu on " + isa);
  }
  restrict_isa("");
}

TEST(Unary, ExpIsAccurateOverItsWholeRange) {
  std::vector<double> x;
  for (double v = -104; v < 88.7; v += 0.0137) x.push_back(static_cast<float>(v));
  const std::vector<int64_t> shape = {static_cast<int64_t>(x.size())};
  for (const std::string& isa : available_isas()) {
    restrict_isa(isa);
    const auto y = run_kernel("unary", {plain(shape, x)}, {TensorView::plain(DType::f32, shape)}, {{"op", "exp"}})[0];
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::exp(x[i]);
      ASSERT_LE(std::abs(y[i] - expected), 3e-7 * expected + 2e-45) << "exp(" << x[i] << ") on " << isa;
    }
  }
  restrict_isa("");
}

TEST(Unary, IntegersAndDoubles) {
  for (const DType dtype : {DType::f64, DType::i64, DType::i32, DType::i8}) {
    const Tensor x = plain({5}, {-3, 0, 2, 7, -1}, dtype);
    check_kernel("unary", {x}, {x.view}, {{"op", "relu"}}, {{0, 0, 2, 7, 0}}, 0, "relu");
    check_kernel("unary", {x}, {x.view}, {{"op", "abs"}}, {{3, 0, 2, 7, 1}}, 0, "abs");
    check_kernel("unary", {x}, {x.view}, {{"op", "square"}}, {{9, 0, 4, 49, 1}}, 0, "square");
    const TensorView flags = TensorView::plain(DType::boolean, std::vector<int64_t>{5});
    check_kernel("unary", {x}, {flags}, {{"op", "logical_not"}}, {{0, 1, 0, 0, 0}}, 0, "logical_not");
  }
}

TEST(Unary, RunsAnEpilogueAndWorksInPlace) {
  const Tensor x = random_plain({2, 6, 3, 5}, 1), full = random_plain({2, 6, 3, 5}, 2),
               gate = random_plain({2, 6, 1, 1}, 3);
  std::vector<double> expected(x.values.size());
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = std::max(0.0, std::tanh(x.values[i]) * gate.values[i / 15] + full.values[i]);
  const Params params = {{"op", "tanh"}, {"epilogue", "mul %2; add %1; relu"}};
  check_kernel("unary", {x, full, gate}, {x.view}, params, {expected}, 1e-6, "tanh gate add relu");
  const auto in_place = run_kernel("unary", {x, full, gate}, {x.view}, params, {.threads = 2, .in_place = true});
  expect_close(in_place[0], expected, 1e-6, "in place");
}

// y[i] over the broadcast shape of two operands given with numpy rules.
template <typename F>
std::vector<double> broadcast(const Tensor& a, const Tensor& b, const std::vector<int64_t>& shape, F f) {
  const auto at = [&](const Tensor& t, int64_t index) {
    int64_t offset = 0, step = 1;
    for (int axis = static_cast<int>(shape.size()) - 1; axis >= 0; --axis) {
      const int64_t i = index % shape[static_cast<size_t>(axis)];
      index /= shape[static_cast<size_t>(axis)];
      const int own = axis - (static_cast<int>(shape.size()) - t.view.rank);
      if (own < 0) continue;
      const int64_t dim = t.view.dims[static_cast<size_t>(own)];
      offset += (dim == 1 ? 0 : i) * step;
      step *= dim;
    }
    return t.values[static_cast<size_t>(offset)];
  };
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  std::vector<double> y;
  for (int64_t i = 0; i < count; ++i) y.push_back(f(at(a, i), at(b, i)));
  return y;
}

TEST(Binary, BroadcastsOverEveryMixtureOfLayouts) {
  const std::vector<int64_t> shape = {2, 19, 3, 4};
  const std::vector<std::vector<int64_t>> others = {{2, 19, 3, 4}, {1, 19, 1, 1}, {2, 19, 1, 1}, {19, 1, 1},  {4},
                                                    {1},           {2, 1, 3, 4},  {3, 1},        {1, 1, 1, 4}};
  for (const std::string op : {"add", "sub", "mul", "div", "max", "min", "prelu"})
    for (const auto& other : others)
      for (const bool swap : {false, true})
        for (const int layouts : {0, 1, 2, 3}) {
          Tensor a = layouts % 2 != 0 ? random_nhwc(shape, 1, 2) : random_plain(shape, 1);
          Tensor b = random_plain(other, 2);
          for (double& v : b.values) v += v < 0 ? -0.5 : 0.5;
          // A rank-1 second operand of prelu is one slope per channel, not per column.
          if (op == "prelu" && (swap || other.size() == 1)) continue;
          if (other.size() == 4 && layouts >= 2) b.view = TensorView::nhwc(DType::f32, other, other[1] + 1);
          if (swap) std::swap(a, b);
          const BlockOp block_op = *block_op_from_name(op);
          const auto expected = broadcast(a, b, shape, [&](double x, double y) {
            return static_cast<double>(scalar_binary(block_op, static_cast<float>(x), static_cast<float>(y)));
          });
          const TensorView y =
              layouts >= 2 ? TensorView::nhwc(DType::f32, shape) : TensorView::plain(DType::f32, shape);
          check_kernel("binary", {a, b}, {y}, {{"op", op}}, {expected}, 1e-7, "binary " + op);
          if (HasFatalFailure()) return;
        }
}

TEST(Binary, PreluSlopesBelongToChannels) {
  for (const bool nhwc : {false, true})
    for (const int64_t slopes : {1, 5}) {
      const Tensor x = nhwc ? random_nhwc({2, 5, 3, 5}, 1) : random_plain({2, 5, 3, 5}, 1);
      const Tensor w = random_plain({slopes}, 2);
      std::vector<double> expected;
      for (size_t i = 0; i < x.values.size(); ++i) {
        const double slope = w.values[slopes == 1 ? 0 : i / 15 % 5];
        expected.push_back(x.values[i] > 0 ? x.values[i] : x.values[i] * slope);
      }
      check_kernel("binary", {x, w}, {x.view}, {{"op", "prelu"}}, {expected}, 1e-7, "prelu");
    }
}

TEST(Binary, ScalarLibraryOpsAndNan) {
  const double nan = std::nan("");
  const Tensor a = plain({6}, {-7, 7, -7, nan, 2, 5}), b = plain({6}, {3, -3, -3, 1, nan, 2});
  const auto run = [&](const std::string& op) { return run_kernel("binary", {a, b}, {a.view}, {{"op", op}})[0]; };
  expect_close(run("remainder"), {2, -2, -1, nan, nan, 1}, 0, "remainder");
  expect_close(run("floor_div"), {-3, -3, 2, nan, nan, 2}, 0, "floor_div");
  expect_close(run("max"), {3, 7, -3, nan, nan, 5}, 0, "max");
  expect_close(run("min"), {-7, -3, -7, nan, nan, 2}, 0, "min");
  expect_close(run("pow"), {-343, std::pow(7.0, -3.0), std::pow(-7.0, -3.0), nan, nan, 25}, 1e-7, "pow");
}

TEST(Binary, IntegerArithmetic) {
  for (const DType dtype : {DType::i64, DType::i32}) {
    const Tensor a = plain({4}, {-7, 7, -7, 5}, dtype), b = plain({4}, {3, -3, -3, 0}, dtype);
    const auto run = [&](const std::string& op) { return run_kernel("binary", {a, b}, {a.view}, {{"op", op}})[0]; };
    expect_close(run("add"), {-4, 4, -10, 5}, 0, "add");
    expect_close(run("mul"), {-21, -21, 21, 0}, 0, "mul");
    expect_close(run("floor_div"), {-3, -3, 2, 0}, 0, "floor_div");
    expect_close(run("remainder"), {2, -2, -1, 0}, 0, "remainder");
    expect_close(run("div"), {-2, -2, 2, 0}, 0, "div");
    expect_close(run("max"), {3, 7, -3, 5}, 0, "max");
  }
}

TEST(Binary, ComparisonsAndLogic) {
  const double nan = std::nan("");
  const TensorView flags = TensorView::plain(DType::boolean, std::vector<int64_t>{4});
  const Tensor a = plain({4}, {1, 2, 3, nan}), b = plain({4}, {2, 2, 2, 2});
  const std::vector<std::pair<std::string, std::vector<double>>> expected = {
      {"eq", {0, 1, 0, 0}}, {"ne", {1, 0, 1, 1}}, {"lt", {1, 0, 0, 0}},
      {"le", {1, 1, 0, 0}}, {"gt", {0, 0, 1, 0}}, {"ge", {0, 1, 1, 0}}};
  for (const auto& [op, result] : expected) check_kernel("binary", {a, b}, {flags}, {{"op", op}}, {result}, 0, op);
  const Tensor p = plain({4}, {0, 0, 1, 1}, DType::boolean), q = plain({4}, {0, 1, 0, 1}, DType::boolean);
  check_kernel("binary", {p, q}, {flags}, {{"op", "logical_and"}}, {{0, 0, 0, 1}}, 0, "and");
  check_kernel("binary", {p, q}, {flags}, {{"op", "logical_or"}}, {{0, 1, 1, 1}}, 0, "or");
  check_kernel("binary", {p, q}, {flags}, {{"op", "logical_xor"}}, {{0, 1, 1, 0}}, 0, "xor");
  check_kernel("binary", {p, q}, {flags}, {{"op", "add"}}, {{0, 1, 1, 1}}, 0, "bool add");
}

TEST(Where, ChoosesAndBroadcasts) {
  const Tensor c = plain({3, 1}, {1, 0, 1}, DType::boolean);
  for (const DType dtype : {DType::f32, DType::i64, DType::i8}) {
    const Tensor a = plain({4}, {1, 2, 3, 4}, dtype), b = plain({1}, {9}, dtype);
    check_kernel("where", {c, a, b}, {TensorView::plain(dtype, std::vector<int64_t>{3, 4})}, {},
                 {{1, 2, 3, 4, 9, 9, 9, 9, 1, 2, 3, 4}}, 0, "where");
  }
}

TEST(Cast, TruncatesAndTests) {
  const Tensor x = plain({5}, {-1.75, 0, 0.5, 3.99, 100});
  const auto to = [](DType dtype) { return TensorView::plain(dtype, std::vector<int64_t>{5}); };
  check_kernel("cast", {x}, {to(DType::i64)}, {}, {{-1, 0, 0, 3, 100}}, 0, "i64");
  check_kernel("cast", {x}, {to(DType::i32)}, {}, {{-1, 0, 0, 3, 100}}, 0, "i32");
  check_kernel("cast", {x}, {to(DType::boolean)}, {}, {{1, 0, 1, 1, 1}}, 0, "bool");
  check_kernel("cast", {x}, {to(DType::f64)}, {}, {{-1.75, 0, 0.5, static_cast<double>(3.99f), 100}}, 0, "f64");
  const Tensor flags = plain({5}, {1, 0, 1, 0, 1}, DType::boolean);
  check_kernel("cast", {flags}, {to(DType::f32)}, {}, {{1, 0, 1, 0, 1}}, 0, "f32");
}

TEST(Unary, NamesAnUnknownOp) {
  try {
    run_kernel("unary", {plain({1}, {1})}, {TensorView::plain(DType::f32, std::vector<int64_t>{1})},
               {{"op", "frobnicate"}});
    FAIL() << "accepted";
  } catch (const InvalidModel& error) {
    EXPECT_NE(std::string(error.what()).find("no operation is named 'frobnicate'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace hetnn::kernels::testing
