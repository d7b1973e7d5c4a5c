// Comparisons and logic against the meaning of their operators, bit for bit.
#include "../kernel_runner.h"
#include "expect_error.h"

namespace hetnn::kernels::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

const std::vector<std::string> kOfNumbers = {"eq", "ne", "gt", "ge", "lt", "le"};
const std::vector<std::string> kOfTruths = {"logical_and", "logical_or", "logical_xor"};
const std::vector<DType> kTypes = {DType::f32, DType::i32, DType::i64, DType::u8, DType::boolean};

std::vector<std::string> all_operators() {
  std::vector<std::string> out = kOfNumbers;
  out.insert(out.end(), kOfTruths.begin(), kOfTruths.end());
  return out;
}

// What the operator means for values of their own type.
std::vector<double> truths(const std::string& op, const std::vector<Tensor>& inputs) {
  std::vector<std::optional<hetnn::Tensor>> operands;
  for (const Tensor& input : inputs) {
    std::byte* data = nullptr;
    operands.emplace_back(
        hetnn::Tensor::zeros(input.view.dtype, {input.view.shape().begin(), input.view.shape().end()}, &data));
    for (const double value : input.values) {
      write_element(input.view.dtype, data, value);
      data += dtype_bytes(input.view.dtype);
    }
  }
  const hetnn::Tensor y = run_meaning(op, operands);
  return {y.values<bool>().begin(), y.values<bool>().end()};
}

// Few different values, so that many are equal; of bools 0 and 1.
Tensor random_of(DType dtype, const std::vector<int64_t>& shape, unsigned seed, bool nhwc = false) {
  Tensor out{TensorView::plain(dtype, shape), {}};
  if (nhwc) out.view = TensorView::nhwc(dtype, shape, shape[1] + 3);
  const bool has_sign = dtype != DType::u8 && dtype != DType::boolean;
  out.values = random_values(out.view.elems(), seed, has_sign ? -2 : 0, dtype == DType::boolean ? 1.99 : 3);
  for (double& value : out.values) value = std::floor(value);
  return out;
}

void check(const std::string& op, const std::vector<Tensor>& inputs, const TensorView& y) {
  std::string what = op + " of " + std::string(dtype_name(inputs[0].view.dtype));
  for (const Tensor& input : inputs) what += " " + ::testing::PrintToString(input.view.shape());
  check_kernel("compare", inputs, {y}, {{"op", op}}, {truths(op, inputs)}, 0, what);
}

struct Shapes {
  std::vector<int64_t> a, b, y;
};

// Runs of every remainder of a block's size, long and short rows, and each way to broadcast.
const std::vector<Shapes> kShapes = {{{}, {}, {}},
                                     {{1}, {1}, {1}},
                                     {{63}, {63}, {63}},
                                     {{64}, {1}, {64}},
                                     {{1}, {129}, {129}},
                                     {{4100}, {4100}, {4100}},
                                     {{0, 3}, {3}, {0, 3}},
                                     {{5, 7}, {5, 1}, {5, 7}},
                                     {{70, 1}, {4}, {70, 4}},
                                     {{3, 700}, {3, 1}, {3, 700}},
                                     {{3, 1}, {2500}, {3, 2500}},
                                     {{2, 5, 3, 7}, {5, 1, 1}, {2, 5, 3, 7}},
                                     {{2, 1, 3, 1}, {1, 5, 1, 7}, {2, 5, 3, 7}}};

TEST(Compare, EveryTypeAndBroadcastMatchesTheMeaning) {
  for (const DType dtype : kTypes)
    for (const std::string& op : all_operators())
      for (const auto& [a, b, y] : kShapes) {
        check(op, {random_of(dtype, a, 1), random_of(dtype, b, 2)}, TensorView::plain(DType::boolean, y));
        if (HasFatalFailure()) return;
      }
}

TEST(Compare, EveryMixtureOfLayoutsMatchesTheMeaning) {
  const std::vector<int64_t> shape = {2, 5, 3, 7};
  for (const DType dtype : {DType::f32, DType::i64, DType::boolean})
    for (const bool a : {false, true})
      for (const bool b : {false, true})
        for (const bool y : {false, true}) {
          const std::vector<Tensor> inputs = {random_of(dtype, shape, 1, a), random_of(dtype, shape, 2, b)};
          check("ge", inputs,
                y ? TensorView::nhwc(DType::boolean, shape, 8) : TensorView::plain(DType::boolean, shape));
          if (HasFatalFailure()) return;
        }
}

TEST(Compare, LogicalNotAsksForZero) {
  for (const DType dtype : kTypes)
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {63}, {4100}, {2, 5, 3, 7}}) {
      check("logical_not", {random_of(dtype, shape, 1)}, TensorView::plain(DType::boolean, shape));
      if (shape.size() == 4)
        check("logical_not", {random_of(dtype, shape, 1, true)}, TensorView::plain(DType::boolean, shape));
      if (HasFatalFailure()) return;
    }
}

TEST(Compare, SpecialValuesMatchTheMeaning) {
  const std::vector<double> values = {std::nan(""), kInf, -kInf, 0.0, -0.0, 1.5, -1.5, -1.4013e-45, 3e38, -3e38};
  std::vector<double> left, right;
  for (const double a : values)
    for (const double b : values) left.push_back(a), right.push_back(b);
  const Tensor a = plain({static_cast<int64_t>(left.size())}, left), b = plain({a.view.dims[0]}, right);
  const TensorView y = TensorView::plain(DType::boolean, a.view.shape());
  for (const std::string& op : all_operators()) check(op, {a, b}, y);
  check("logical_not", {a}, y);
}

// Integers that are one number as f32, or even as f64.
template <typename T>
void check_neighbours(T high) {
  const std::vector<T> left = {high, high - 1, static_cast<T>(-high), std::numeric_limits<T>::min(), high};
  const std::vector<T> right = {high - 1, high, static_cast<T>(1 - high), std::numeric_limits<T>::max(), high};
  const std::vector<int64_t> shape = {static_cast<int64_t>(left.size())};
  const std::vector<std::optional<hetnn::Tensor>> operands = {hetnn::Tensor::of(shape, left),
                                                              hetnn::Tensor::of(shape, right)};
  const std::vector<TensorView> inputs(2, TensorView::plain(DTypeOf<T>::value, shape));
  const TensorView y = TensorView::plain(DType::boolean, shape);
  for (const std::string& op : all_operators()) {
    const hetnn::Tensor expected = run_meaning(op, operands);
    for (const std::string& isa : available_isas()) {
      restrict_isa(isa);
      const Params params = {{"op", op}};
      const auto kernel = make_kernel(*find_kernel("compare"), {inputs, {&y, 1}, params});
      std::vector<std::byte> found(left.size());
      const std::byte* in[] = {operands[0]->data(), operands[1]->data()};
      std::byte* out = found.data();
      SpinBarrier barrier(1);
      kernel->run({0, 1, barrier, nullptr}, in, &out);
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0) << op << " on " << isa;
    }
    restrict_isa("");
  }
}

TEST(Compare, IntegersCompareAsIntegers) {
  check_neighbours<int32_t>((1 << 24) + 1);
  check_neighbours<int64_t>((int64_t{1} << 53) + 1);
}

TEST(Compare, RefusesWithAReason) {
  const Tensor x = plain({2}, {0, 1});
  const TensorView y = TensorView::plain(DType::boolean, x.view.shape());
  EXPECT_ERROR(run_kernel("compare", {x, x}, {y}, {{"op", "gcd"}}), Unsupported, "compare takes no gcd of f32");
  const Tensor wide = plain({2}, {0, 1}, DType::f64), byte = plain({2}, {0, 1}, DType::u8);
  EXPECT_ERROR(run_kernel("compare", {wide, wide}, {y}, {{"op", "gt"}}), Unsupported, "compare takes no gt of f64");
  EXPECT_ERROR(run_kernel("compare", {byte, byte}, {y}, {{"op", "gt"}, {"b.scales", std::vector<double>{0.5}}}),
               Unsupported, "compare takes values as they stand; got quantized ones as b");
}

}  // namespace
}  // namespace hetnn::kernels::testing
