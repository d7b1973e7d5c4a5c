// unary, binary, where and cast against the meaning of their operators.
#include "../kernel_runner.h"
#include "expect_error.h"
#include "hetnn/base/convert.h"
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::kernels::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A function's operator. gelu_tanh is a form of gelu.
std::string operator_of(const std::string& function) { return function == "gelu_tanh" ? "gelu" : function; }

// What the operator means for these values as T, with `constants` for the function's.
template <typename T>
std::vector<double> meaning(const std::string& function, const std::vector<double>& constants,
                            const std::vector<Tensor>& inputs) {
  std::vector<ops::Type> types;
  std::vector<std::optional<hetnn::Tensor>> values;
  for (const Tensor& input : inputs) {
    const std::vector<T> elements(input.values.begin(), input.values.end());
    const std::vector<int64_t> shape(input.view.shape().begin(), input.view.shape().end());
    values.emplace_back(hetnn::Tensor::of(shape, elements));
    types.push_back({DTypeOf<T>::value, {shape.begin(), shape.end()}});
  }
  ops::Call call;
  call.op = &ops::OpTable::global().get(operator_of(function));
  for (const ops::Type& type : types) call.inputs.push_back({&type, nullptr});
  const ops::FunctionDef& def = ops::function_def(*ops::function_from_name(function));
  for (size_t k = 0; k < constants.size(); ++k) call.attrs[std::string(def.constants[k])] = constants[k];
  if (function == "gelu_tanh") call.attrs["approximate"] = std::string("tanh");
  ops::complete(call);
  const hetnn::Tensor y = ops::evaluate(call, values, {}).front();
  return {y.values<T>().begin(), y.values<T>().end()};
}

struct UnaryCase {
  std::string op;
  std::vector<double> values;
  double tolerance;
  double low = -6, high = 6;
};

const std::vector<UnaryCase> kUnaryCases = {{"relu", {}, 0},
                                            {"clamp", {-0.5, 2.0}, 0},
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
                                            {"abs", {}, 0},
                                            {"neg", {}, 0},
                                            {"sqrt", {}, 1e-7, 0, 50},
                                            {"rsqrt", {}, 1e-6, 1, 9},
                                            {"reciprocal", {}, 1e-6, 0.5, 9},
                                            {"exp", {}, 1e-6, -5, 5},
                                            {"log", {}, 1e-6, 0.1, 9},
                                            {"sin", {}, 1e-6},
                                            {"cos", {}, 1e-6},
                                            {"erf", {}, 1e-6},
                                            {"erfc", {}, 1e-6},
                                            {"floor", {}, 0},
                                            {"ceil", {}, 0},
                                            {"round", {}, 0},
                                            {"sign", {}, 0}};

TEST(Unary, EveryFunctionMatchesItsMeaning) {
  for (const UnaryCase& c : kUnaryCases)
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {37}, {2, 5, 3, 7}, {4100}}) {
      Tensor x = random_plain(shape, 7);
      x.values = random_values(x.view.elems(), 7, c.low, c.high);
      x.values[0] = 0.75 * c.high;  // an ordinary magnitude, against which tolerances are measured
      const std::vector<double> expected = meaning<double>(c.op, c.values, {x});
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

// NaN, infinities, zeros, denormals, the ends of the type, and where functions saturate.
const std::vector<double> kEdges = {std::nan(""), kInf,  -kInf,  0.0,  -0.0,  static_cast<double>(1e-40f),
                                    -1.4013e-45,  1e-30, -1e-30, 0.25, -0.25, 1.5,
                                    -2.5,         20.5,  -20.5,  88.5, -88.5, 100,
                                    -100,         1e30,  -1e30,  3e38, -3e38, static_cast<double>(0x1.fffffep127f)};

// Which zero a choice or a polynomial gives is open.
bool keeps_sign_of_zero(const std::string& op) {
  return op != "relu" && op != "clamp" && op != "maximum" && op != "minimum" &&
         ops::function_def(*ops::function_from_name(op)).cost == ops::Cost::light;
}

// Element by element, because magnitudes differ. Results too small for a normal f32 may be any of its denormals, and
// what cancels (x / 2 of gelu) is as exact as its summands.
void expect_edges(const std::vector<double>& found, const std::vector<double>& expected, const std::string& op,
                  const std::string& isa, const std::vector<double>& x) {
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string what = op + " of " + std::to_string(x[i]) + " on " + isa;
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(found[i]) : found[i] == expected[i])
          << what << " is " << found[i] << ", expected " << expected[i];
    } else {
      const double magnitude = std::max(std::abs(expected[i]), op.starts_with("gelu") ? std::abs(x[i]) : 0.0);
      EXPECT_LE(std::abs(found[i] - expected[i]), 1e-6 * magnitude + 1.2e-38)
          << what << " is " << found[i] << ", expected " << expected[i];
    }
    if (expected[i] == 0 && found[i] == 0 && keeps_sign_of_zero(op)) {
      EXPECT_EQ(std::signbit(found[i]), std::signbit(expected[i])) << what;
    }
  }
}

TEST(Unary, EdgeValuesMatchTheMeaning) {
  const Tensor x = plain({static_cast<int64_t>(kEdges.size())}, kEdges);
  for (const UnaryCase& c : kUnaryCases) {
    const std::vector<double> expected = meaning<float>(c.op, c.values, {x});
    for (const std::string& isa : available_isas()) {
      restrict_isa(isa);
      const auto y = run_kernel("unary", {x}, {x.view}, {{"op", c.op}, {"values", c.values}})[0];
      expect_edges(y, expected, c.op, isa, x.values);
    }
    restrict_isa("");
  }
}

TEST(Binary, EdgeValuesMatchTheMeaning) {
  std::vector<double> left, right;
  for (const double a : kEdges)
    for (const double b : kEdges) left.push_back(a), right.push_back(b);
  const Tensor a = plain({static_cast<int64_t>(left.size())}, left), b = plain({a.view.dims[0]}, right);
  for (const std::string op : {"add", "sub", "mul", "div", "maximum", "minimum", "pow"}) {
    const std::vector<double> expected = meaning<float>(op, {}, {a, b});
    for (const std::string& isa : available_isas()) {
      restrict_isa(isa);
      const auto y = run_kernel("binary", {a, b}, {a.view}, {{"op", op}})[0];
      expect_edges(y, expected, op, isa, left);
    }
    restrict_isa("");
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

TEST(Unary, LeavesOtherTypesToTheMeaning) {
  for (const DType dtype : {DType::f64, DType::i64, DType::i8, DType::boolean}) {
    const Tensor x = plain({2}, {0, 1}, dtype);
    EXPECT_ERROR(run_kernel("unary", {x}, {x.view}, {{"op", "relu"}}), Unsupported,
                 text("unary takes f32; input 0 is ", dtype_name(dtype)));
  }
}

TEST(Unary, RunsSteps) {
  const Tensor x = random_plain({2, 6, 3, 5}, 1), full = random_plain({2, 6, 3, 5}, 2),
               gate = random_plain({2, 6, 1, 1}, 3);
  std::vector<double> expected(x.values.size());
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = std::max(0.0, std::tanh(x.values[i]) * gate.values[i / 15] + full.values[i]);
  const Params params = {{"op", "tanh"}};
  const std::vector<Step> steps = {{"mul", 2, {}}, {"add", 1, {}}, {"relu", -1, {}}};
  check_kernel("unary", {x, full, gate}, {x.view}, params, {expected}, 1e-6, "tanh gate add relu", steps);
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
  for (const std::string op : {"add", "sub", "mul", "div", "maximum", "minimum", "prelu"})
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
          const auto expected = op == "prelu"
                                    ? broadcast(a, b, shape, [](double x, double y) { return x > 0 ? x : x * y; })
                                    : meaning<float>(op, {}, {a, b});
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

TEST(Where, ChoosesAndBroadcasts) {
  const Tensor c = plain({3, 1}, {1, 0, 1}, DType::boolean);
  for (const DType dtype : {DType::f32, DType::i64, DType::i8}) {
    const Tensor a = plain({4}, {1, 2, 3, 4}, dtype), b = plain({1}, {9}, dtype);
    check_kernel("where", {c, a, b}, {TensorView::plain(dtype, std::vector<int64_t>{3, 4})}, {},
                 {{1, 2, 3, 4, 9, 9, 9, 9, 1, 2, 3, 4}}, 0, "where");
  }
}

TEST(Cast, MatchesTheMeaningForEveryPairOfTypes) {
  const std::vector<double> values = {-1.75, 0, 0.5, 3.99, 100, -300, 70000, 3e9, 1e30, kInf, -kInf, std::nan("")};
  const int64_t count = static_cast<int64_t>(values.size());
  for (const DType from : kComputedDTypes)
    for (const DType to : kComputedDTypes) {
      const TensorView x = TensorView::plain(from, {&count, 1}), y = TensorView::plain(to, {&count, 1});
      std::byte* bytes = nullptr;
      const hetnn::Tensor source = hetnn::Tensor::zeros(from, {count}, &bytes);
      visit_dtype(from, [&](auto zero) {
        for (int64_t k = 0; k < count; ++k)
          reinterpret_cast<decltype(zero)*>(bytes)[k] = convert<decltype(zero)>(values[static_cast<size_t>(k)]);
      });
      const ops::Type type{from, {Dim(count)}};
      ops::Call call;
      call.op = &ops::OpTable::global().get("cast");
      call.inputs = {{&type, nullptr}};
      call.attrs = {{"to", to}};
      ops::complete(call);
      const std::optional<hetnn::Tensor> inputs[] = {source};
      const hetnn::Tensor expected = ops::evaluate(call, inputs, {}).front();
      std::vector<std::byte> found(static_cast<size_t>(expected.bytes()));
      const std::byte* in = source.data();
      std::byte* out = found.data();
      SpinBarrier barrier(1);
      const Params none;
      make_kernel(*find_kernel("cast"), {{&x, 1}, {&y, 1}, none})->run({0, 1, barrier, nullptr}, &in, &out);
      EXPECT_EQ(std::memcmp(out, expected.data(), found.size()), 0) << dtype_name(from) << " to " << dtype_name(to);
    }
}

TEST(Unary, NamesAnUnknownOp) {
  EXPECT_ERROR(run_kernel("unary", {plain({1}, {1})}, {TensorView::plain(DType::f32, std::vector<int64_t>{1})},
                          {{"op", "frobnicate"}}),
               Unsupported, "unary knows no function named 'frobnicate'");
}

}  // namespace
}  // namespace hetnn::kernels::testing
