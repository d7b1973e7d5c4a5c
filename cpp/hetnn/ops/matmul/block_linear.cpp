// block_linear: y = x * weight^T + bias, of weights in a few bits with a scale for each block of a row.
#include <algorithm>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/product.h"
#include "hetnn/ops/quant/blocks.h"

namespace hetnn::ops {
namespace {

constexpr int64_t kLeastBlock = 16, kMostBlock = 256;

std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &codes = call.input(1), &scales = call.input(2);
  const int64_t bits = fixed_integer(call, "bits");
  if (bits != 2 && bits != 4 && bits != 8)
    fail(call, "block_linear_c1", text("bits must be 2, 4 or 8; got ", bits, "."));
  if (!is_float(x.dtype) || !is_float(scales.dtype) || codes.dtype != DType::u8) {
    fail(call, "block_linear_c2",
         text("x and scales must be real and codes u8; got ", to_string(x), ", ", to_string(scales), " and ",
              to_string(codes), ". Cast them."));
  }
  if (codes.rank() != 3 || !is_static(codes.shape)) {
    fail(call, "block_linear_c3",
         text("codes must be [N,blocks,bytes of a block], of known sizes; got ", to_string(codes.shape), "."));
  }
  const int64_t block = std::min(codes.shape[2].value(), kMostBlock + 1) * 8 / bits;
  if (block < kLeastBlock || block > kMostBlock || block % kLeastBlock != 0) {
    fail(call, "block_linear_c4",
         text("a block must have a multiple of ", kLeastBlock, " weights, at most ", kMostBlock, "; got ", block,
              ", of ", bits, " bits in ", codes.shape[2], " bytes."));
  }
  if (x.shape.empty() || ceil_div(x.shape.back(), block) != codes.shape[1]) {
    fail(call, "block_linear_c5",
         text("the blocks of ", block, " weights must cover the input's last dimension; got codes ",
              to_string(codes.shape), " with input ", to_string(x.shape), ". Check the input's features."));
  }
  const Shape of_blocks = {codes.shape[0], codes.shape[1]};
  if (scales.shape != of_blocks || (call.has(3) && call.input(3) != Type{DType::u8, of_blocks})) {
    fail(call, "block_linear_c6",
         text("scales and zero points, u8, must be ", to_string(of_blocks), ", one for each block; got ",
              to_string(scales), call.has(3) ? text(" and ", to_string(call.input(3))) : "", "."));
  }
  check_parameters(call, 4, 5, {codes.shape[0]}, "block_linear_c7");
  check_scales(call, 2, "block_linear_c8", false);
  Shape y = x.shape;
  y.back() = codes.shape[0];
  return {{x.dtype, y}};
}

void meaning(const Evaluation& e) {
  const View &x = e.input(0), &codes = e.input(1);
  const Result y = e.output();
  const int64_t bits = fixed_integer(e.call, "bits"), n = codes.shape[0], blocks = codes.shape[1],
                bytes = codes.shape[2], block = bytes * 8 / bits, k = x.shape.back(), rows = n == 0 ? 0 : y.elems() / n;
  const auto packed = values_as<uint8_t>(codes);
  const std::vector<double> scales = values_as<double>(e.input(2));
  std::vector<uint8_t> zeros(scales.size(), static_cast<uint8_t>(1 << (bits - 1)));
  if (e.has(3)) zeros = values_as<uint8_t>(e.input(3));
  const int mask = (1 << bits) - 1;
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    constexpr int64_t kAtOnce = 8;  // rows of the weight that are reals at a time
    std::vector<T> weight(static_cast<size_t>(kAtOnce * k));
    for (int64_t first = 0; first < n; first += kAtOnce) {
      const int64_t width = std::min(kAtOnce, n - first);
      for (int64_t i = 0; i < width * k; ++i) {
        const int64_t column = i % k, of_block = (first + i / k) * blocks + column / block, bit = column % block * bits;
        const int code = packed[static_cast<size_t>(of_block * bytes + bit / 8)] >> (bit % 8) & mask;
        weight[static_cast<size_t>(i)] = static_cast<T>(code - zeros[static_cast<size_t>(of_block)]) *
                                         static_cast<T>(scales[static_cast<size_t>(of_block)]);
      }
      T* to = y.values<T>() + first;
      multiply<Sum<T>>(
          rows, width, k, Matrix<T>{x.values<T>().data(), k, 1}, Matrix<T>{weight.data(), 1, k},
          [&](int64_t, int64_t j) {
            return e.has(4) ? static_cast<Sum<T>>(e.input(4).values<T>()[static_cast<size_t>(first + j)]) : Sum<T>(0);
          },
          [=](int64_t i, int64_t j, Sum<T> sum) { to[i * n + j] = static_cast<T>(sum); });
    }
  });
}

Work work(const Call& call) {
  return {.macs = elements(call.output().shape) * call.input(0).shape.back(),
          .flops = call.has(4) ? elements(call.output().shape) : Dim(0)};
}

Constraint no_blocks_of_rows(std::string_view label) {
  return {"npu", label, kNoBlocks, [](const Call& call) -> std::optional<std::pair<std::string, std::string>> {
            const int64_t bits = fixed_integer(call, "bits");
            return std::pair<std::string, std::string>{
                text("weights of ", bits, " bits in blocks of ", call.input(1).shape[2] * Dim(8 / bits)),
                kInPlaceOfBlocks};
          }};
}

}  // namespace

OpDef define_block_linear() {
  return {
      .name = "block_linear",
      .doc =
          "Matrix product with a weight of a few bits, a scale for each block of a row: y[...,n] = bias[n] + sum over "
          "k of x[...,k] * (code[n,k] - zero_point[n,b]) * scale[n,b], b the block of k.",
      .inputs = {{"x", "[...,K]"},
                 {"codes",
                  "[N,B,block bits / 8], u8: the codes of a block one behind the other, from the lowest bits up"},
                 {"scales", "[N,B], of any real type"},
                 {"zero_points", "[N,B], u8; absent: half of all codes, 2^(bits-1)", true},
                 {"bias", "[N]", true}},
      .attrs = {{"bits", AttrKind::integer, Dim(4), "of a code: 2, 4 or 8"}},
      .traits = Trait::compute | Trait::wide,
      .infer = infer,
      .meaning = meaning,
      .work = work,
      .keeps_batch = keeps_batch_of_first,
      .constraints = {no_blocks_of_rows("block_linear_npu_c1")},
      .tolerance = 1e-5,
      .samples = {"block_linear(f32[3,40], u8[5,3,8], f32[5,3], u8[5,3], f32[5])",
                  "block_linear(f32[2,n,64], u8[20,2,32], f32[20,2], _, _) {bits = 8}",
                  "block_linear(f32[1,32], u8[17,2,4], f16[17,2], _, _) {bits = 2}"}};
}

}  // namespace hetnn::ops
