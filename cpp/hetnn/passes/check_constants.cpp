// The operators' own checks, of what is known of their inputs.
#include "hetnn/passes/check_constants.h"

#include <algorithm>

#include "hetnn/base/interrupt.h"

namespace hetnn::passes {
namespace {

// Of a size that is open: every index may be in it.
constexpr int64_t kOpen = int64_t{1} << 48;

bool is_never_empty(const ir::Graph& graph, const Dim& size) {
  if (size.is_static()) return size.value() > 0;
  return std::ranges::any_of(graph.symbols,
                             [&](const Symbol& symbol) { return symbol.min > 0 && size == Dim::symbol(symbol.name); });
}

bool holds_symbols(const ops::Attrs& attrs) {
  return std::ranges::any_of(attrs, [](const auto& entry) {
    if (const auto* size = std::get_if<Dim>(&entry.second)) return !size->is_static();
    const auto* sizes = std::get_if<std::vector<Dim>>(&entry.second);
    return sizes && !is_static(*sizes);
  });
}

}  // namespace

void check_constants(const ir::Graph& graph) {
  for (const ir::Node* node : graph.nodes()) {
    check_interrupt();
    if (!node->op().check || holds_symbols(node->call().attrs)) continue;
    const bool runs = std::ranges::all_of(node->outputs(), [&](const ir::Value* output) {
      return std::ranges::all_of(output->shape(), [&](const Dim& size) { return is_never_empty(graph, size); });
    });
    if (!runs) continue;
    const size_t count = node->inputs().size();
    std::vector<std::vector<int64_t>> shapes(count);
    std::vector<ops::View> views(count);
    bool known = false;
    for (size_t k = 0; k < count; ++k) {
      if (!node->input(k)) continue;
      for (const Dim& size : node->input(k)->shape()) shapes[k].push_back(size.is_static() ? size.value() : kOpen);
      const Tensor* constant = node->constant_input(k);
      known = known || constant;
      views[k] = ops::View(node->input(k)->dtype(), shapes[k], constant ? constant->data() : nullptr);
    }
    if (known) node->op().check(node->call(), views);
  }
}

}  // namespace hetnn::passes
