// The same elements under shapes of fewer axes, which devices have.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
namespace {

// [all axes before, the last `kept`].
Shape joined(const Shape& shape, size_t kept) {
  const auto first = static_cast<int>(shape.size() - kept);
  Shape out = {elements(shape, 0, first)};
  out.insert(out.end(), shape.begin() + first, shape.end());
  return out;
}

bool has_one_scale(const ir::Value* value) {
  return !value || !value->type().quant || value->type().quant->per_tensor();
}
bool have_one_scale(const Match& m) { return std::ranges::all_of(m.root()->inputs(), has_one_scale); }
constexpr Guard kOneScale = {"quantized values have one scale", have_one_scale};

bool has_batches(const Match& m) {
  const Shape &a = m.value("a")->shape(), &b = m.value("b")->shape();
  return a.size() > 3 && a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

Rule matmul() {
  return {.name = "matmul_of_joined_batches",
          .equation = "matmul(a, b) = matmul(a, b) with all axes of batches as one",
          .pattern = op("matmul", {any("a"), any("b")}),
          .guards = {{"a and b have the same batches, along more than one axis", has_batches}, kOneScale},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                ir::Value *a = m.value("a"), *b = m.value("b");
                ir::Value* y = build.like(
                    *m.root(), {build.reshape(a, joined(a->shape(), 2)), build.reshape(b, joined(b->shape(), 2))});
                return build.reshape(y, m.root()->output()->shape());
              },
          .quantized = true};
}

bool runs_over_the_last(const Match& m) {
  const int rank = m.value("x")->rank();
  return rank > 2 && ops::axis_of(m.root()->call(), m.root()->integer("axis"), rank) == rank - 1;
}

Rule softmax() {
  return {.name = "softmax_of_rows",
          .equation = "softmax(x; last axis) = softmax of x as a matrix of rows",
          .pattern = op("softmax", {any("x")}),
          .guards = {{"x has more than two axes, and the axis is the last", runs_over_the_last}, kOneScale},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                ir::Value* x = m.value("x");
                ir::Value* y = build.like(*m.root(), {build.reshape(x, joined(x->shape(), 1))}, {{"axis", Dim(1)}});
                return build.reshape(y, m.root()->output()->shape());
              },
          .quantized = true};
}

Rule layer_norm() {
  return {.name = "layer_norm_of_rows",
          .equation = "layer_norm(x; last axes) = layer_norm of x as a matrix of rows",
          .pattern = op("layer_norm", {any("x")}),
          .guards = {{"x has more than two axes", [](const Match& m) { return m.value("x")->rank() > 2; }}, kOneScale},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                ir::Value* x = m.value("x");
                const auto axes = static_cast<int>(m.root()->integer("axes").value());
                const Dim width = elements(x->shape(), x->rank() - axes);
                std::vector<ir::Value*> inputs = m.root()->inputs();
                inputs[0] = build.reshape(x, {elements(x->shape(), 0, x->rank() - axes), width});
                for (size_t k = 1; k < inputs.size(); ++k) {
                  if (inputs[k]) inputs[k] = build.reshape(inputs[k], {width});
                }
                ir::Value* y = build.like(*m.root(), std::move(inputs), {{"axes", Dim(1)}});
                return build.reshape(y, m.root()->output()->shape());
              },
          .quantized = true};
}

bool is_row_of_four(const Match& m) { return m.value("x")->rank() > 3; }
bool x_has_one_scale(const Match& m) { return has_one_scale(m.value("x")); }

Rule linear() {
  return {.name = "linear_of_rows",
          .equation = "linear(x) = linear of x as a matrix of rows",
          .pattern = op("linear", {any("x")}),
          .guards = {{"x has more than three axes", is_row_of_four}, {"x has one scale", x_has_one_scale}},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                ir::Value* x = m.value("x");
                std::vector<ir::Value*> inputs = m.root()->inputs();
                inputs[0] = build.reshape(x, joined(x->shape(), 1));
                return build.reshape(build.like(*m.root(), std::move(inputs)), m.root()->output()->shape());
              },
          .quantized = true};
}

// Of an operand that repeats along the first axes of the other: how many axes it has, ones in front left out.
std::optional<size_t> axes_of_row(const Shape& whole, const Shape& row) {
  const auto first = std::find_if(row.begin(), row.end(), [](const Dim& dim) { return dim != Dim(1); });
  const auto count = static_cast<size_t>(row.end() - first);
  const bool ends_so = count > 0 && count < whole.size() &&
                       std::equal(first, row.end(), whole.end() - static_cast<std::ptrdiff_t>(count));
  return ends_so ? std::optional(count) : std::nullopt;
}

// Which operand repeats; none where none does.
std::optional<size_t> row_of(const ir::Node& node) {
  for (const size_t k : {size_t{1}, size_t{0}}) {
    const ir::Value *row = node.input(k), *whole = node.input(1 - k);
    if (whole->shape() == node.output()->shape() && axes_of_row(whole->shape(), row->shape())) return k;
  }
  return std::nullopt;
}

Rule repeated() {
  return {.name = "operand_as_row",
          .equation =
              "x + z, z being repeated along the first axes of x, = x as a matrix + z as a row; other pairs likewise",
          .pattern = one_of({"add", "sub", "mul", "maximum", "minimum"}, {any("x"), any("z")}),
          .guards = {{"x has more than two axes or z more than one; their last axes are the same",
                      [](const Match& m) {
                        const std::optional<size_t> row = row_of(*m.root());
                        return row && (m.root()->output()->rank() > 2 || m.root()->input(*row)->rank() > 1);
                      }},
                     kOneScale},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                const ir::Node& root = *m.root();
                const size_t at = *row_of(root);
                std::vector<ir::Value*> inputs = root.inputs();
                const Shape &whole = root.output()->shape(), &row = inputs[at]->shape();
                const Dim width = elements(row);
                const auto rows = static_cast<int>(whole.size() - *axes_of_row(whole, row));
                inputs[at] = build.reshape(inputs[at], {width});
                inputs[1 - at] = build.reshape(inputs[1 - at], {elements(whole, 0, rows), width});
                return build.reshape(build.like(root, std::move(inputs)), whole);
              },
          .quantized = true};
}

}  // namespace

const RuleSet& shapes() {
  static const RuleSet set = {"shapes",
                              "The same elements under shapes of fewer axes.",
                              {matmul(), linear(), softmax(), layer_norm(), repeated()}};
  return set;
}

}  // namespace hetnn::passes::legal
