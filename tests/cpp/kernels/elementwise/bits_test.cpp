// Functions of integers' bits against the meaning of their operators.
#include "../kernel_runner.h"
#include "expect_error.h"

namespace hetnn::kernels::testing {
namespace {

const std::vector<std::string> kOfTwo = {"bitwise_and", "bitwise_or",  "bitwise_xor",
                                         "shift_left",  "shift_right", "gcd"};
const std::vector<DType> kTypes = {DType::boolean, DType::u8, DType::i8, DType::i32, DType::i64};

Tensor random_of(DType dtype, const std::vector<int64_t>& shape, unsigned seed, bool nhwc = false) {
  Tensor out{TensorView::plain(dtype, shape), {}};
  if (nhwc) out.view = TensorView::nhwc(dtype, shape, shape[1] + 3);
  const bool has_sign = dtype != DType::u8 && dtype != DType::boolean;
  out.values = random_values(out.view.elems(), seed, has_sign ? -70 : 0, dtype == DType::boolean ? 1.99 : 70);
  for (double& value : out.values) value = std::floor(value);
  return out;
}

std::vector<double> meant(const std::string& op, const std::vector<Tensor>& inputs) {
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
  std::vector<double> out;
  visit_dtype(y.dtype(), [&](auto zero) {
    for (const auto value : y.values<decltype(zero)>()) out.push_back(static_cast<double>(value));
  });
  return out;
}

TensorView view(DType dtype, const std::vector<int64_t>& shape) { return TensorView::plain(dtype, shape); }

void check(const std::string& op, const std::vector<Tensor>& inputs, const TensorView& y) {
  check_kernel("bits", inputs, {y}, {{"op", op}}, {meant(op, inputs)}, 0, op);
}

TEST(Bits, EveryTypeAndBroadcastMatchesTheMeaning) {
  for (const DType dtype : kTypes) {
    for (const std::string& op : kOfTwo) {
      check(op, {random_of(dtype, {4100}, 1), random_of(dtype, {4100}, 2)}, view(dtype, {4100}));
      check(op, {random_of(dtype, {70, 1}, 1), random_of(dtype, {4}, 2)}, view(dtype, {70, 4}));
      check(op, {random_of(dtype, {2, 5, 3, 7}, 1, true), random_of(dtype, {5, 1, 1}, 2)}, view(dtype, {2, 5, 3, 7}));
      if (HasFatalFailure()) return;
    }
    check("bitwise_not", {random_of(dtype, {63}, 1)}, view(dtype, {63}));
  }
}

TEST(Bits, RefusesRealsWithAReason) {
  const Tensor x = plain({2}, {0, 1});
  EXPECT_ERROR(run_kernel("bits", {x, x}, {x.view}, {{"op", "gcd"}}), Unsupported, "bits takes no gcd of f32");
}

}  // namespace
}  // namespace hetnn::kernels::testing
