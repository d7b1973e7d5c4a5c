// Attention written out as products and a softmax, as torch.onnx and others write it, as one layer.
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hetnn/ops/infer.h"
#include "hetnn/passes/combine.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes {
namespace {

bool is(const ir::Node* node, std::string_view op) { return node && node->op().name == op; }

// What is computed between q, k, v and the result.
struct Written {
  ir::Value *q = nullptr, *turned_k = nullptr, *v = nullptr, *mask = nullptr;
  double scale = 1;
  std::string undefined = "kept";
  std::vector<const ir::Node*> nodes;  // from the last to the first
};

class Reader {
 public:
  explicit Reader(const ir::Node& last) { read_ = read(last); }

  std::optional<Written> written(const ir::Graph& graph) const {
    if (!read_) return std::nullopt;
    const std::set<const ir::Node*> inside(found_.nodes.begin(), found_.nodes.end());
    for (const ir::Node* node : found_.nodes) {
      const ir::Value& value = *node->output();
      if (value.dtype() != DType::f32 && value.dtype() != DType::boolean) return std::nullopt;
      if (node == found_.nodes.front()) continue;
      if (graph.is_output(&value)) return std::nullopt;
      for (const ir::Use& use : value.uses())
        if (!inside.contains(use.node)) return std::nullopt;
    }
    return found_;
  }

 private:
  const ir::Node* take(const ir::Node* node) {
    found_.nodes.push_back(node);
    return node;
  }

  bool read(const ir::Node& last) {
    take(&last);
    found_.v = last.input(1);
    const ir::Node* softmax = last.input(0)->producer();
    if (is(softmax, "where")) softmax = read_without_nan(*softmax);
    if (!is(softmax, "softmax") ||
        ops::axis_of(softmax->call(), softmax->integer("axis"), last.output()->rank()) != last.output()->rank() - 1)
      return false;
    ir::Value* scores = take(softmax)->input(0);
    const ir::Node* product = read_scores(*scores);
    if (!product && is(scores->producer(), "add")) {
      const ir::Node& add = *take(scores->producer());
      for (size_t k = 0; k < 2 && !product; ++k) {
        found_.mask = add.input(1 - k);
        if (add.input(k)->shape() == add.output()->shape()) product = read_scores(*add.input(k));
      }
    }
    if (!product) return false;
    found_.q = read_scaled(product->input(0));
    found_.turned_k = read_scaled(product->input(1));
    return fits();
  }

  // where(s != s, 0, s): rows that are NaN become zeros.
  const ir::Node* read_without_nan(const ir::Node& where) {
    const ir::Node* differs = where.input(0)->producer();
    const Tensor* instead = where.constant_input(1);
    if (!is(differs, "ne") || differs->input(0) != where.input(2) || differs->input(1) != where.input(2) || !instead ||
        single_value(*instead) != 0.0)
      return nullptr;
    take(&where);
    take(differs);
    found_.undefined = "zeros";
    return where.input(2)->producer();
  }

  // The product of which `scores` are a multiple.
  const ir::Node* read_scores(ir::Value& scores) {
    const Written before = found_;
    const ir::Value* product = read_scaled(&scores);
    if (is(product->producer(), "matmul")) return take(product->producer());
    found_ = before;
    return nullptr;
  }

  // What `value` is a multiple of, by a number.
  ir::Value* read_scaled(ir::Value* value) {
    const ir::Node* node = value->producer();
    if (!is(node, "mul") && !is(node, "div")) return value;
    const Tensor* number = node->constant_input(1);
    const std::optional<double> c = number ? single_value(*number) : std::nullopt;
    if (!c || *c == 0 || node->input(0)->shape() != value->shape()) return value;
    found_.scale *= is(node, "mul") ? *c : 1 / *c;
    return take(node)->input(0);
  }

  // One matrix for each image and head; no operand is repeated.
  bool fits() const {
    const Shape &q = found_.q->shape(), &k = found_.turned_k->shape(), &v = found_.v->shape();
    const size_t rank = q.size();
    if ((rank != 3 && rank != 4) || k.size() != rank || v.size() != rank || !std::isfinite(found_.scale)) return false;
    for (size_t axis = 0; axis + 2 < rank; ++axis)
      if (q[axis] != k[axis] || q[axis] != v[axis]) return false;
    return !found_.mask || (rank == 4 && found_.mask->dtype() == DType::f32 && found_.mask->rank() <= 4);
  }

  Written found_;
  bool read_ = false;
};

std::vector<Dim> swapped(std::vector<Dim> axes) {
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return axes;
}

// `value` with its last two axes swapped, by undoing the swap that made it where there is one.
ir::Value* turned_back(ir::Value* value, Build& build) {
  const ir::Node* node = value->producer();
  if (is(node, "permute")) {
    const std::vector<Dim> perm = swapped(node->integers("perm"));
    bool same = true;
    for (size_t k = 0; k < perm.size(); ++k) same = same && perm[k] == Dim(static_cast<int64_t>(k));
    return same ? node->input(0) : build.op("permute", {node->input(0)}, {{"perm", perm}});
  }
  const Shape& shape = value->shape();
  if (is(node, "reshape") && node->input(0)->rank() >= 2) {
    const Shape& before = node->input(0)->shape();
    if (before.back() == shape.back() && before[before.size() - 2] == shape[shape.size() - 2])
      return build.reshape(turned_back(node->input(0), build), swapped(shape));
  }
  std::vector<Dim> perm;
  for (size_t k = 0; k < shape.size(); ++k) perm.emplace_back(static_cast<int64_t>(k));
  return build.op("permute", {value}, {{"perm", swapped(perm)}});
}

ir::Value* with_four_axes(ir::Value* value, Build& build) {
  if (value->rank() == 4) return value;
  Shape shape = value->shape();
  shape.insert(shape.begin(), 1);
  return build.reshape(value, shape);
}

ir::Value* composed(const Match& m, Build& build) {
  const std::optional<Written> found = Reader(*m.root()).written(build.graph());
  if (!found) return nullptr;
  std::vector<ir::Value*> inputs = {with_four_axes(found->q, build),
                                    with_four_axes(turned_back(found->turned_k, build), build),
                                    with_four_axes(found->v, build)};
  if (found->mask) inputs.push_back(found->mask);
  ir::Value* y = build.op("scaled_dot_product_attention", inputs,
                          {{"scale", found->scale}, {"undefined", std::string(found->undefined)}});
  return build.reshape(y, m.root()->output()->shape());
}

}  // namespace

std::vector<const ir::Node*> written_attention(const ir::Graph& graph, const ir::Node& last) {
  const std::optional<Written> found = Reader(last).written(graph);
  return found ? std::vector<const ir::Node*>(found->nodes.rbegin(), found->nodes.rend())
               : std::vector<const ir::Node*>{};
}

const RuleSet& attending() {
  static const RuleSet set = {
      "attending",
      "Attention that is written out as products and a softmax as one layer, on devices that run it.",
      {{.name = "products_as_attention",
        .equation =
            "matmul(softmax(c matmul(q, k turned) + mask), v) = attention(q, k, v, mask); also where NaN of the "
            "softmax becomes 0",
        .pattern = op("matmul", {any("shares"), any("v")}),
        .guards = {{"the values are f32",
                    [](const Match& m) { return m.root()->output()->type().dtype == DType::f32; }}},
        .exactness = "exact in real arithmetic; products are scaled after their sum",
        .rewrite = composed}}};
  return set;
}

}  // namespace hetnn::passes
