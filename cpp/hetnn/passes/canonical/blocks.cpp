// Products with weights in blocks are multiplied by the codes themselves.
#include "hetnn/ops/quant/blocks.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "hetnn/base/convert.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/base/stored.h"
#include "hetnn/passes/canonical/rules.h"

namespace hetnn::passes::canonical {
namespace {

// What block_linear takes.
constexpr int64_t kUnit = 16, kMostBlock = 256;

int64_t block_of(const ir::Node& reals) { return reals.integer("block").value(); }
int axis_of(const ir::Node& reals) {
  const int64_t axis = reals.integer("axis").value();
  return static_cast<int>(axis < 0 ? axis + reals.input(0)->rank() : axis);
}
// Of a code: 0 for a type whose codes are no integers of a few bits.
int bits_of(DType dtype) {
  const bool is_code = is_stored(dtype) ? !is_stored_float(dtype) : dtype == DType::i8 || dtype == DType::u8;
  return is_code ? dtype_bits(dtype) : 0;
}

// How many codes of a row block_linear has under one scale: a block, a part of it, or of a row under one scale as many
// as it takes at most; 0 where it has no such blocks.
int64_t unit_of(const ir::Node& reals) {
  const Shape& x = reals.input(0)->shape();
  const int64_t block = block_of(reals);
  if (x.size() != 2 || axis_of(reals) != 1 || !is_static(x)) return 0;
  if (block >= x[1].value()) return std::clamp((x[1].value() + kUnit - 1) / kUnit * kUnit, kUnit, kMostBlock);
  for (int64_t unit = kMostBlock; unit >= kUnit; unit -= kUnit) {
    if (block % unit == 0) return unit;
  }
  return 0;
}

// What belongs to the blocks of [N, K], for parts of them: [N, parts].
template <typename T>
Tensor of_parts(std::span<T> values, const ir::Node& reals) {
  const int64_t rows = reals.input(0)->shape()[0].value(), columns = reals.input(0)->shape()[1].value(),
                block = block_of(reals), unit = unit_of(reals), parts = (columns + unit - 1) / unit,
                blocks = (columns + block - 1) / block;
  std::vector<std::remove_const_t<T>> out;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t part = 0; part < parts; ++part)
      out.push_back(values[static_cast<size_t>(row * blocks + std::min(part * unit / block, blocks - 1))]);
  }
  return Tensor::of<std::remove_const_t<T>>({rows, parts}, out);
}

// A constant with its axes in another order, as a constant; another value as a node.
ir::Value* permuted(ir::Value* x, const std::vector<Dim>& perm, Build& build) {
  if (!x) return nullptr;
  ir::Value* moved = build.op("permute", {x}, {{"perm", perm}});
  const Tensor* known = moved->producer()->constant_input(0);
  if (!known) return moved;
  const std::optional<Tensor> inputs[] = {*known};
  return build.constant(std::move(ops::evaluate(moved->producer()->call(), inputs, {}).front()));
}

// dequantize_blocks with the axes of its operands in another order.
ir::Value* permuted_blocks(const ir::Node& reals, const std::vector<Dim>& perm, Build& build) {
  const auto at = std::ranges::find(perm, Dim(axis_of(reals)));
  std::vector<ir::Value*> inputs;
  for (size_t k = 0; k < reals.inputs().size(); ++k) inputs.push_back(permuted(reals.input(k), perm, build));
  return build.op("dequantize_blocks", std::move(inputs),
                  {{"axis", Dim(at - perm.begin())}, {"block", Dim(block_of(reals))}});
}

Rule turned() {
  return {.name = "blocks_turned",
          .equation = "permute(dequantize_blocks(x, s, z)) = dequantize_blocks(permute(x), permute(s), permute(z))",
          .pattern = op("permute", {op("dequantize_blocks", {constant("x"), constant("s")}, "reals")}),
          .guards = {},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            return permuted_blocks(*m.node("reals"), m.root()->integers("perm"), build);
          }};
}

Rule product() {
  return {.name = "product_of_blocks",
          .equation = "x dequantize_blocks(w, s, z) = linear(x, dequantize_blocks(permute(w), permute(s), permute(z)))",
          .pattern = op("matmul", {any("x"), op("dequantize_blocks", {constant("w"), constant("s")}, "reals")}),
          .guards = {{"w is a matrix, and x has two axes or more",
                      [](const Match& m) { return m.value("w")->rank() == 2 && m.value("x")->rank() >= 2; }}},
          .exactness = "the order of sums may differ",
          .rewrite = [](const Match& m, Build& build) {
            return build.op("linear", {m.value("x"), permuted_blocks(*m.node("reals"), {1, 0}, build)});
          }};
}

Rule rows() {
  return {
      .name = "rows_of_blocks",
      .equation = "gather(dequantize_blocks(x, s, z), i) = dequantize_blocks(gather(x, i), gather(s, i), gather(z, i))",
      .pattern = op("gather", {op("dequantize_blocks", {any("x"), any("s")}, "reals"), any("i")}),
      .guards = {{"what is gathered lies along another axis than the blocks",
                  [](const Match& m) {
                    const int rank = m.value("x")->rank();
                    const int64_t axis = m.root()->integer("axis").value();
                    return (axis < 0 ? axis + rank : axis) != axis_of(*m.node("reals"));
                  }}},
      .exactness = "bit for bit",
      .rewrite = [](const Match& m, Build& build) {
        const ir::Node& reals = *m.node("reals");
        const int64_t given = m.root()->integer("axis").value(),
                      axis = given < 0 ? given + m.value("x")->rank() : given;
        std::vector<ir::Value*> inputs;
        for (size_t k = 0; k < reals.inputs().size(); ++k) {
          ir::Value* input = reals.input(k);
          inputs.push_back(input ? build.op("gather", {input, m.value("i")}, m.root()->attrs()) : nullptr);
        }
        const int64_t moved = axis_of(reals) + (axis < axis_of(reals) ? m.value("i")->rank() - 1 : 0);
        return build.op("dequantize_blocks", std::move(inputs),
                        {{"axis", Dim(moved)}, {"block", Dim(block_of(reals))}});
      }};
}

// The scales, in f16 where that holds all of them, else in f32, or f64 where they are.
Tensor scales_of(const ir::Node& reals) {
  const Tensor& scales = *reals.constant_input(1);
  if (scales.dtype() == DType::f64) return of_parts(scales.values<double>(), reals);
  const std::vector<float> values = ops::values_as<float>(scales);
  const Tensor wide = of_parts(std::span(values), reals);
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DType::f16, wide.shape(), &data);
  auto* halves = reinterpret_cast<uint16_t*>(data);
  for (const float scale : wide.values<float>()) {
    *halves = narrow_float(DType::f16, scale);
    if (widen_float(DType::f16, *halves++) != scale) return wide;
  }
  return out;
}

// Codes from 0 on of [N, K], packed [N, blocks, bytes]: those of a block from the lowest bits on, behind the last
// zeros.
Tensor packed(const Tensor& x, int64_t block, int bits) {
  const int64_t rows = x.shape()[0], columns = x.shape()[1], blocks = (columns + block - 1) / block,
                bytes = block * bits / 8;
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DType::u8, {rows, blocks, bytes}, &data);
  const int mask = (1 << bits) - 1, turn = integer_range(x.dtype()).first < 0 ? 1 << (bits - 1) : 0;
  const auto* from = reinterpret_cast<const uint8_t*>(x.data());
  for (int64_t row = 0; row < rows; ++row) {
    std::byte* to = data + row * blocks * bytes;
    for (int64_t k = 0; k < columns; ++k)
      to[k * bits / 8] |= static_cast<std::byte>(((from[row * columns + k] ^ turn) & mask) << (k * bits % 8));
  }
  return out;
}

// Zero points of codes from 0 on; null for what stands for half of all codes, as block_linear takes it. None where one
// is no such code.
std::optional<ir::Value*> zeros_of(const ir::Node& reals, int bits, Build& build) {
  const DType codes = reals.input(0)->dtype();
  const double turn = integer_range(codes).first < 0 ? 1 << (bits - 1) : 0, half = 1 << (bits - 1);
  const Tensor* given = reals.inputs().size() > 2 && reals.input(2) ? reals.constant_input(2) : nullptr;
  std::vector<double> zeros(static_cast<size_t>(reals.constant_input(1)->elems()));
  if (given) zeros = ops::numbers_of(*given);
  std::vector<uint8_t> points;
  for (const double zero : zeros) {
    const double point = zero + turn;
    if (point != std::nearbyint(point) || point < 0 || point > 255) return std::nullopt;
    points.push_back(static_cast<uint8_t>(point));
  }
  if (std::ranges::all_of(points, [&](uint8_t point) { return point == half; })) return nullptr;
  return build.constant(of_parts(std::span(points), reals));
}

Rule linear() {
  return {
      .name = "linear_of_blocks",
      .equation = "linear(x, dequantize_blocks(w, s, z), b) = block_linear(x, codes of w from 0 on, packed; s, z, b)",
      .pattern = op("linear", {any("x"), op("dequantize_blocks", {constant("w"), constant("s")}, "reals")}),
      .guards = {{"x is of the type of the scales",
                  [](const Match& m) { return m.value("x")->type().dtype == m.value("s")->dtype(); }},
                 {"the weights are of 2, 4 or 8 bits, in blocks along the last axis, of a multiple of 16 or a row each",
                  [](const Match& m) { return bits_of(m.value("w")->dtype()) > 0 && unit_of(*m.node("reals")) > 0; }},
                 {"zero points are constants",
                  [](const Match& m) {
                    const ir::Node& reals = *m.node("reals");
                    return reals.inputs().size() < 3 || !reals.input(2) || reals.constant_input(2);
                  }}},
      .exactness = "the order of sums may differ, and products are rounded once less",
      .rewrite = [](const Match& m, Build& build) -> ir::Value* {
        const ir::Node& reals = *m.node("reals");
        const int bits = bits_of(m.value("w")->dtype());
        const std::optional<ir::Value*> zeros = zeros_of(reals, bits, build);
        if (!zeros) return nullptr;
        ir::Value* bias = m.root()->inputs().size() > 2 ? m.root()->input(2) : nullptr;
        return build.op("block_linear",
                        {m.value("x"), build.constant(packed(*m.tensor("w"), unit_of(reals), bits)),
                         build.constant(scales_of(reals)), *zeros, bias},
                        {{"bits", Dim(bits)}});
      }};
}

}  // namespace

const RuleSet& blocks() {
  static const RuleSet set = {"blocks",
                              "Weights in blocks with a scale each are multiplied by as they are kept.",
                              {turned(), product(), linear(), rows()}};
  return set;
}

}  // namespace hetnn::passes::canonical
