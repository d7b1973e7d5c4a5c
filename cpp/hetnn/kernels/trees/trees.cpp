// tree_ensemble: what its meaning does, on every thread.
#include "hetnn/kernels/trees/trees.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/ops/trees/forest.h"

namespace hetnn::kernels {
namespace {

template <typename X, typename W>
class TreeEnsemble final : public Kernel {
 public:
  explicit TreeEnsemble(const KernelCall& call)
      : rows_(call.inputs[0].dims[0]),
        nodes_(call.inputs[1].dims[0]),
        trees_(call.inputs[3].dims[0]),
        weights_(call.inputs[4].elems()),
        has_columns_(call.params.integer("columns", 0) != 0),
        leaves_(call.params.integer("ends", 0) != 0 ? call.inputs.back().elems() : 0) {
    shape_.features = call.inputs[0].dims[1];
    shape_.width = call.params.integer("width");
    shape_.aggregate = *ops::aggregate_from_name(call.params.text("aggregate", "sum"));
  }

  int64_t scratch_bytes(int) const override { return by_trees() ? trees_ * rows_ * int64_t{sizeof(int32_t)} : 0; }
  bool serial() const override { return rows_ * trees_ < 512; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const ops::Forest<X, W> forest = at(inputs);
    const auto* x = reinterpret_cast<const X*>(inputs[0]);
    auto* y = reinterpret_cast<W*>(outputs[0]);
    auto* voted = reinterpret_cast<bool*>(outputs[1]);
    if (by_trees() && context.threads > 1) return share_trees(context, forest, x, y, voted);
    const Share share = share_of(rows_, context.thread, context.threads);
    const int64_t place = share.begin * forest.width;
    if (!forest.evaluate(x + share.begin * forest.features, share.end - share.begin, y + place, voted + place))
      context.refuse();
  }

 private:
  // Few rows: each thread finds the leaves of some trees, and one adds them up in the order of the trees.
  bool by_trees() const { return rows_ < 8; }

  void share_trees(const RunContext& context, const ops::Forest<X, W>& forest, const X* x, W* y, bool* voted) const {
    auto* found = reinterpret_cast<int32_t*>(context.scratch);
    const Share share = share_of(trees_, context.thread, context.threads, 16);
    const bool within = forest.find_leaves(x, rows_, share.begin, share.end, found + share.begin * rows_);
    // A thread whose tables lead astray leaves no leaf behind.
    if (!within) std::fill(found + share.begin * rows_, found + share.end * rows_, -1);
    context.barrier.arrive_and_wait();
    if (context.thread != 0) return;
    forest.begin(rows_, y, voted);
    if (!forest.add(found, trees_ * rows_, rows_, y, voted)) return context.refuse();
    forest.end(rows_, y);
  }

  ops::Forest<X, W> at(const std::byte* const* inputs) const {
    const auto table = [&](size_t k, int64_t count) {
      return std::span(reinterpret_cast<const int32_t*>(inputs[k]), static_cast<size_t>(count));
    };
    ops::Forest<X, W> forest = shape_;
    forest.nodes = {reinterpret_cast<const ops::ForestNode*>(inputs[1]), static_cast<size_t>(nodes_)};
    forest.splits = {reinterpret_cast<const X*>(inputs[2]), static_cast<size_t>(nodes_)};
    forest.roots = table(3, trees_);
    forest.weights = {reinterpret_cast<const W*>(inputs[4]), static_cast<size_t>(weights_)};
    if (has_columns_) forest.columns = table(5, weights_);
    if (leaves_ > 0) forest.ends = table(has_columns_ ? 6 : 5, leaves_);
    return forest;
  }

  const int64_t rows_, nodes_, trees_, weights_;
  const bool has_columns_;
  const int64_t leaves_;  // 0: one a weight
  ops::Forest<X, W> shape_;
};

}  // namespace

Refusal serves_tree_ensemble(const KernelCall& call) { return Terms("tree_ensemble", call).plain(); }

std::unique_ptr<Kernel> make_tree_ensemble(const KernelCall& call) {
  std::unique_ptr<Kernel> made;
  ops::visit_forest(call.inputs[0].dtype == DType::f32, call.inputs[4].dtype == DType::f32,
                    [&](auto x, auto w) { made = std::make_unique<TreeEnsemble<decltype(x), decltype(w)>>(call); });
  return made;
}

std::span<const Variant> trees_variants() {
  static constexpr Variant kVariants[] = {{.name = "tree_ensemble",
                                           .op = "tree_ensemble",
                                           .speed = "reduce",
                                           .serves = serves_tree_ensemble,
                                           .create = make_tree_ensemble,
                                           .layout = LayoutWish::plain,
                                           .is_table = [](int input) { return input > 0; }}};
  return kVariants;
}

}  // namespace hetnn::kernels
