// tree_ensemble: what many decision trees say of rows of features.
#include <string>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/trees/forest.h"

namespace hetnn::ops {
namespace {

enum Input : size_t { kX, kNodes, kSplits, kRoots, kWeights, kColumns, kEnds };

bool is_real(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(kX), &nodes = call.input(kNodes), &splits = call.input(kSplits);
  const Type &roots = call.input(kRoots), &weights = call.input(kWeights);
  if (!is_real(x.dtype) || x.rank() != 2)
    fail(call, "tree_ensemble_c1", text("x must be f32 or f64, [N,F]; got ", to_string(x), "."));
  if (nodes.dtype != DType::i32 || nodes.rank() != 2 || nodes.shape[1] != Dim(4) || splits.dtype != x.dtype ||
      splits.shape != Shape{nodes.shape[0]}) {
    fail(call, "tree_ensemble_c2",
         text("nodes must be i32[K,4], and splits [K] of x's type; got ", to_string(nodes), " and ", to_string(splits),
              " for x ", to_string(x), "."));
  }
  if (roots.dtype != DType::i32 || roots.rank() != 1 || !is_real(weights.dtype) || weights.rank() != 1)
    fail(call, "tree_ensemble_c3",
         text("roots must be i32[T], and weights f32 or f64, [V]; got ", to_string(roots), " and ", to_string(weights),
              "."));
  for (const size_t k : {kColumns, kEnds}) {
    if (!call.has(k)) continue;
    const Type& table = call.input(k);
    if (table.dtype != DType::i32 || table.rank() != 1 || (k == kColumns && table.shape != weights.shape))
      fail(call, "tree_ensemble_c4",
           text("columns must be i32[V], one a weight, and ends i32[L]; got ", to_string(table), " for weights ",
                to_string(weights), "."));
  }
  const int64_t width = fixed_integer(call, "width");
  if (width < 1) fail(call, "tree_ensemble_c5", text("width must be 1 or more; got ", width, "."));
  if (!aggregate_from_name(call.string("aggregate")))
    fail(call, "tree_ensemble_c6",
         text("aggregate must be sum, average, min or max; got '", call.string("aggregate"), "'."));
  const Shape y = {x.shape[0], width};
  return {{weights.dtype, y}, {DType::boolean, y}};
}

template <typename X, typename W>
Forest<X, W> forest_of(const Call& call, std::span<const View> inputs) {
  const auto table = [&](size_t k) { return call.has(k) ? inputs[k].values<int32_t>() : std::span<const int32_t>(); };
  const std::span<const int32_t> nodes = table(kNodes);
  return {.nodes = {reinterpret_cast<const ForestNode*>(nodes.data()), nodes.size() / 4},
          .splits = inputs[kSplits].values<X>(),
          .roots = table(kRoots),
          .weights = inputs[kWeights].values<W>(),
          .columns = table(kColumns),
          .ends = table(kEnds),
          .features = inputs[kX].shape[1],
          .width = fixed_integer(call, "width"),
          .aggregate = *aggregate_from_name(call.string("aggregate"))};
}

template <typename Visit>
void visit_forest_of(const Call& call, std::span<const View> inputs, const Visit& visit) {
  visit_forest(inputs[kX].dtype == DType::f32, inputs[kWeights].dtype == DType::f32,
               [&](auto x, auto w) { visit(forest_of<decltype(x), decltype(w)>(call, inputs)); });
}

// Texts are made where one is needed: a forest may have a million nodes.
void check_place(const Call& call, std::string_view what, size_t k, int64_t place, int64_t first, int64_t end,
                 std::string_view also = "") {
  if (place >= first && place < end) return;
  fail(
      call, "tree_ensemble_c7",
      text(what, k, also, " is ", place, ", where [", first, ",", end, ") is. The model is damaged: export it again."));
}

// A node or a leaf of the forest, to which number k of something leads.
template <typename F>
void check_goal(const Call& call, const F& forest, std::string_view what, size_t k, int64_t goal, int64_t first) {
  if (goal < 0) return check_place(call, what, k, ~goal, 0, forest.leaves(), ", a leaf,");
  check_place(call, what, k, goal, first, static_cast<int64_t>(forest.nodes.size()));
}

void check(const Call& call, std::span<const View> inputs) {
  if (call.input(kX).shape[0] == Dim(0)) return;  // nothing walks
  for (const size_t k : {kNodes, kRoots, kColumns, kEnds}) {
    if (call.has(k) && !inputs[k].data && inputs[k].elems() > 0) return;
  }
  visit_forest_of(call, inputs, [&](const auto& forest) {
    for (size_t k = 0; k < forest.nodes.size(); ++k) {
      const ForestNode& node = forest.nodes[k];
      check_place(call, "the feature of node ", k, node.feature, 0, forest.features);
      const auto behind = static_cast<int64_t>(k) + 1;
      check_goal(call, forest, "the left of node ", k, node.left, behind);
      check_goal(call, forest, "the right of node ", k, node.right, behind);
    }
    for (size_t k = 0; k < forest.roots.size(); ++k) check_goal(call, forest, "root ", k, forest.roots[k], 0);
    for (size_t k = 0; k < forest.columns.size(); ++k)
      check_place(call, "column ", k, forest.columns[k], 0, forest.width);
    int64_t end = 0;
    for (size_t k = 0; k < forest.ends.size(); ++k) {
      check_place(call, "the end of leaf ", k, forest.ends[k], end, static_cast<int64_t>(forest.weights.size()) + 1);
      end = forest.ends[k];
    }
  });
}

void meaning(const Evaluation& e) {
  const Result y = e.output(0), voted = e.output(1);
  visit_forest_of(e.call, e.inputs, [&](const auto& forest) {
    using W = typename std::remove_cvref_t<decltype(forest.weights)>::value_type;
    using X = typename std::remove_cvref_t<decltype(forest.splits)>::value_type;
    const bool within =
        forest.evaluate(e.input(kX).values<X>().data(), y.shape[0], y.values<W>(), voted.values<bool>());
    HETNN_ASSERT(within, "the check took tables that lead out of themselves");
  });
}

Work work(const Call& call) { return {.flops = call.input(kX).shape[0] * call.input(kRoots).shape[0] * Dim(16)}; }

}  // namespace

OpDef define_tree_ensemble() {
  return {.name = "tree_ensemble",
          .doc =
              "Each row of x walks every tree from its root to a leaf; y joins the weights of these leaves, 0 where "
              "there are none; voted: where there are any.",
          .inputs =
              {{"x", "[N,F], f32 or f64"},
               {"nodes",
                "i32[K,4]: the feature that a node asks about; when the row goes left, as bits (1: the feature is less "
                "than the split, 2: equal, 4: greater, 8: neither); where left and right lead: to a node further "
                "behind or, below 0, to leaf -1 - number"},
               {"splits", "[K], of x's type"},
               {"roots", "i32[T]: where the trees begin, each a node or a leaf"},
               {"weights", "f32 or f64, [V]: those of leaf 0, of leaf 1 and so on"},
               {"columns", "i32[V]: the column of y that a weight goes to; absent: 0", true},
               {"ends", "i32[L]: where the weights of each leaf end; absent: each leaf has one", true}},
          .attrs = {{"width", AttrKind::integer, std::nullopt, "columns of y"},
                    {"aggregate", AttrKind::string, std::string("sum"),
                     "sum, average (the sum through the number of trees), min or max"}},
          .outputs = {"y", "voted"},
          .onnx = {{"ai.onnx.ml.TreeEnsemble"},
                   {"ai.onnx.ml.TreeEnsembleClassifier"},
                   {"ai.onnx.ml.TreeEnsembleRegressor"}},
          .infer = infer,
          .check = check,
          .meaning = meaning,
          .work = work,
          .tolerance = 0,
          .samples = {"tree_ensemble(f32[5,3], i32[3,4] {0,3,1,-1, 1,8,2,-2, 2,6,-3,-4}, f32[3] {1,0,2}, i32[3] "
                      "{0,1,-2}, f32[4] {1,2,3,4}) {width = 1}",
                      "tree_ensemble(f64[n,2], i32[2,4] {0,1,1,-1, 1,5,-1,-2}, f64[2] {1,0}, i32[2] {0,1}, f32[3] "
                      "{1,2,3}, i32[3] {0,2,1}, i32[2] {1,3}) {width = 3, aggregate = max}"}};
}

}  // namespace hetnn::ops
