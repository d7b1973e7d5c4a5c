// Comparisons, logic and choices as steps, of which truth values are never written, and functions whose running value
// is not their first operand: behind every kernel that runs tiles or rows, against the same computed one after another.
#include "hetnn/kernels/elementwise/mixed_step.h"

#include "../kernel_runner.h"

namespace hetnn::kernels::testing {
namespace {

// Eighths of small size, so that every sum and product is exact and many values are equal.
Tensor random_of(DType dtype, std::vector<int64_t> shape, unsigned seed, bool nhwc = false) {
  Tensor out{nhwc ? TensorView::nhwc(dtype, shape, shape[1] + 3) : TensorView::plain(dtype, shape), {}};
  const bool truth = dtype == DType::boolean;
  out.values = random_values(out.view.elems(), seed, truth || dtype == DType::u8 ? 0 : -2, truth ? 1.99 : 2);
  for (double& value : out.values) value = dtype == DType::f32 ? std::round(value * 8) / 8 : std::floor(value);
  return out;
}

// An element of a tensor that broadcasts to `shape`.
double at(const Tensor& t, const std::vector<int64_t>& shape, int64_t index) {
  int64_t offset = 0, step = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const int64_t i = index % shape[axis];
    index /= shape[axis];
    const int own = static_cast<int>(axis) - static_cast<int>(shape.size()) + t.view.rank;
    const int64_t dim = own < 0 ? 1 : t.view.dims[static_cast<size_t>(own)];
    offset += dim == 1 ? 0 : i * step;
    step *= dim;
  }
  return t.values[static_cast<size_t>(offset)];
}

double computed(const Step& step, const std::vector<double>& x) {
  const std::string& f = step.function;
  if (f == kChoice) return x[0] != 0 ? x[1] : x[2];
  if (f == kToF32) return x[0];
  if (f == "gt") return x[0] > x[1];
  if (f == "le") return x[0] <= x[1];
  if (f == "eq") return x[0] == x[1];
  if (f == "logical_and") return x[0] != 0 && x[1] != 0;
  if (f == "logical_not") return x[0] == 0;
  if (f == "sub") return x[0] - x[1];
  if (f == "mul") return x[0] * x[1];
  if (f == "neg") return -x[0];
  ADD_FAILURE() << f;
  return 0;
}

struct Chain {
  std::string kernel;
  std::vector<Tensor> inputs;  // of the kernel, then of the steps
  std::vector<double> made;    // by the kernel alone, in the order of a plain output
  std::vector<Step> steps;
  DType dtype;  // of what the kernel alone makes
  Params params = {};
};

void check(const Chain& chain, const std::vector<int64_t>& shape, bool nhwc = false) {
  std::vector<double> expected = chain.made;
  for (size_t i = 0; i < expected.size(); ++i) {
    for (const Step& step : chain.steps) {
      std::vector<double> operands;
      for (int k = 0; k < operand_count(step); ++k)
        operands.push_back(at(chain.inputs[static_cast<size_t>(step.input + k)], shape, static_cast<int64_t>(i)));
      operands.insert(operands.begin() + step.main, expected[i]);
      expected[i] = computed(step, operands);
    }
  }
  const DType written = result_type(chain.steps, chain.dtype);
  std::string what = chain.kernel;
  for (const Step& step : chain.steps) what += " " + step.function + std::to_string(step.main);
  check_kernel(chain.kernel, chain.inputs,
               {nhwc ? TensorView::nhwc(written, shape, shape[1] + 1) : TensorView::plain(written, shape)},
               chain.params, {expected}, 0, what + " " + ::testing::PrintToString(shape), chain.steps);
}

Step of(std::string_view function, int input, int main = 0, DType dtype = DType::f32) {
  return {.function = std::string(function), .input = input, .values = {}, .main = main, .dtype = dtype};
}

// Behind one input and on the operands a (1), b (2), of the shape, a truth value (3) and one for all or for each row
// (4).
std::vector<std::vector<Step>> behind_numbers() {
  const DType truth = DType::boolean;
  return {{of("gt", 1)},
          {of("le", 4, 1)},
          {of("gt", 4), of(kToF32, -1, 0, DType::boolean), of("mul", 2)},
          {of("gt", 4), of("logical_and", 3, 0, truth), of("logical_not", -1, 0, truth)},
          {of("gt", 4), of(kChoice, 1)},
          {of("neg", -1), of(kChoice, 3, 2)},
          {of("eq", 1), of(kChoice, 3, 1, truth)},
          {of("sub", 1, 1), of("sub", 4, 1), of("neg", -1)}};
}

std::vector<Tensor> operands(const std::vector<int64_t>& shape, const std::vector<int64_t>& row, bool nhwc = false) {
  return {random_of(DType::f32, shape, 1, nhwc), random_of(DType::f32, shape, 2),
          random_of(DType::f32, shape, 3, nhwc), random_of(DType::boolean, shape, 4, nhwc),
          random_of(DType::f32, row, 5),         random_of(DType::f32, shape, 6)};
}

struct Shapes {
  std::vector<int64_t> whole, row;
};
const std::vector<Shapes> kShapes = {{{1}, {1}},
                                     {{63}, {1}},
                                     {{4100}, {1}},
                                     {{70, 4}, {70, 1}},
                                     {{3, 700}, {3, 1}},
                                     {{2, 5, 3, 7}, {5, 1, 1}},
                                     {{2, 5, 3, 7}, {2, 1, 3, 1}},
                                     {{0, 3}, {1}}};

TEST(MixedStep, BehindFunctionsSumsAndChoices) {
  for (const auto& [shape, row] : kShapes) {
    const std::vector<Tensor> all = operands(shape, row);
    std::vector<double> negated = all[0].values;
    for (double& value : negated) value = -value;
    for (const std::vector<Step>& steps : behind_numbers()) {
      std::vector<Tensor> inputs = all;
      if (steps.back().function == kChoice && steps.back().dtype == DType::boolean)
        inputs[4] = random_of(DType::boolean, row, 7);
      check({"unary", inputs, negated, steps, DType::f32, {{"op", "neg"}}}, shape);
      // Which of its inputs are a sum's own, the first operand says.
      if (steps[0].input == 1) check({"nary", inputs, all[0].values, steps, DType::f32}, shape);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(MixedStep, BehindComparisonsOfEveryType) {
  for (const DType dtype : {DType::f32, DType::i64, DType::u8, DType::boolean})
    for (const auto& [shape, row] : kShapes) {
      const Tensor x = random_of(dtype, shape, 1), y = random_of(dtype, row, 2);
      std::vector<double> made(x.values.size());
      for (size_t i = 0; i < made.size(); ++i) made[i] = x.values[i] <= at(y, shape, static_cast<int64_t>(i));
      const Tensor a = random_of(DType::f32, shape, 3), b = random_of(DType::f32, row, 4),
                   truth = random_of(DType::boolean, row, 5);
      const DType boolean = DType::boolean;
      const std::vector<std::vector<Step>> chains = {{of(kToF32, -1, 0, DType::boolean), of("mul", 2), of("sub", 3, 1)},
                                                     {of(kChoice, 2), of("neg", -1)},
                                                     {of("logical_and", 4, 0, boolean)},
                                                     {of("logical_not", -1, 0, boolean), of(kChoice, 2)}};
      for (const std::vector<Step>& steps : chains) {
        check({"compare", {x, y, a, b, truth}, made, steps, boolean, {{"op", "le"}}}, shape);
        if (HasFatalFailure()) return;
      }
    }
}

TEST(MixedStep, BehindChoices) {
  for (const DType dtype : {DType::f32, DType::boolean})
    for (const auto& [shape, row] : kShapes) {
      const Tensor holds = random_of(DType::boolean, row, 1), a = random_of(dtype, shape, 2),
                   b = random_of(dtype, row, 3), more = random_of(dtype, shape, 4);
      std::vector<double> made(a.values.size());
      for (size_t i = 0; i < made.size(); ++i) {
        const auto k = static_cast<int64_t>(i);
        made[i] = at(holds, shape, k) != 0 ? a.values[i] : at(b, shape, k);
      }
      check({"where", {holds, a, b, more}, made, {of("le", 3, 0, dtype)}, dtype}, shape);
      check({"where", {holds, a, b, more}, made, {of("eq", 3, 0, dtype), of(kToF32, -1, 0, DType::boolean)}, dtype},
            shape);
      if (HasFatalFailure()) return;
    }
}

TEST(MixedStep, EveryMixtureOfLayouts) {
  const std::vector<int64_t> shape = {2, 5, 3, 7};
  for (const bool inputs_turned : {false, true})
    for (const bool output_turned : {false, true}) {
      std::vector<Tensor> all = operands(shape, {5, 1, 1}, inputs_turned);
      std::vector<double> negated = all[0].values;
      for (double& value : negated) value = -value;
      const std::vector<Step> steps = {of("gt", 4), of(kToF32, -1, 0, DType::boolean), of("mul", 5), of("le", 5)};
      check({"unary", all, negated, steps, DType::f32, {{"op", "neg"}}}, shape, output_turned);
      if (HasFatalFailure()) return;
    }
}

TEST(MixedStep, BehindRowsOfAProduct) {
  const std::vector<int64_t> shape = {9, 21};
  const Tensor x = random_of(DType::f32, {9, 1}, 1), w = random_of(DType::f32, {1, 21}, 2),
               a = random_of(DType::f32, shape, 3), b = random_of(DType::f32, shape, 4),
               truth = random_of(DType::boolean, shape, 5), row = random_of(DType::f32, {21}, 6);
  std::vector<double> made;
  for (const double left : x.values)
    for (const double right : w.values) made.push_back(left * right);
  const std::vector<Tensor> inputs = {x, w, a, b, truth, row};
  for (const std::vector<Step>& steps :
       {std::vector<Step>{of("gt", 5), of(kToF32, -1, 0, DType::boolean), of("mul", 2)},
        {of("le", 2, 1), of(kChoice, 2)},
        {of("sub", 5, 1)},
        {of("gt", 2), of("logical_and", 4, 0, DType::boolean), of(kToF32, -1, 0, DType::boolean)}}) {
    check({"matmul", inputs, made, steps, DType::f32}, shape);
    if (HasFatalFailure()) return;
  }
}

TEST(MixedStep, ChoosesBitsAndComparesWithNanAsAlone) {
  const Tensor x = plain({5}, {std::nan(""), -0.0, INFINITY, 1, -INFINITY}), zero = plain({1}, {0});
  const Tensor one = plain({1}, {1}), holds = plain({5}, {1, 1, 0, 0, 1}, DType::boolean);
  const Params params = {{"op", "relu"}};
  // relu keeps NaN.
  check_kernel("unary", {x, zero}, {TensorView::plain(DType::boolean, {{5}})}, params, {{0, 1, 1, 1, 1}}, 0, "nan",
               {of("le", 1, 1)});
  check_kernel("unary", {x, holds, one}, {x.view}, params, {{std::nan(""), 0, 1, 1, 0}}, 0, "choice",
               {of(kChoice, 1, 1)});
}

}  // namespace
}  // namespace hetnn::kernels::testing
