// Common subexpressions, found by operator, inputs and hashes and proved equal by attributes.
#include "hetnn/passes/merge_common.h"

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "hetnn/ir/rewriter.h"

namespace hetnn::passes {
namespace {

// Constants this large are equal only when they share their bytes: comparing weights byte by byte gains nothing.
constexpr int64_t kCompareBytes = 1 << 16;

// Nodes with unequal keys differ; pointers only tell equal from unequal, so their order changes no result.
struct Key {
  const ops::OpDef* op;
  std::vector<const ir::Value*> inputs;
  uint64_t attrs_hash;
  auto operator<=>(const Key&) const = default;
};

uint64_t hash_of(const Tensor& tensor) {
  if (tensor.bytes() > kCompareBytes) return reinterpret_cast<uintptr_t>(tensor.data());
  const std::string_view bytes(reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
  return std::hash<std::string_view>()(bytes);
}

uint64_t hash_of(const Dim& dim) {
  return dim.is_static() ? std::hash<int64_t>()(dim.value()) : std::hash<std::string>()(dim.to_string());
}
template <typename T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T> uint64_t hash_of(T value) { return std::hash<T>()(value); }
uint64_t hash_of(const std::string& source) { return std::hash<std::string>()(source); }

template <typename T>
uint64_t hash_of(const std::vector<T>& values) {
  uint64_t hash = values.size();
  for (const T& value : values) hash = hash * 31 + hash_of(value);
  return hash;
}

// Many nodes that differ by attributes alone may read one value: every step of an unrolled loop cuts out its own row.
uint64_t hash_of(const ops::Attrs& attrs) {
  uint64_t hash = 0;
  for (const auto& [name, attr] : attrs)
    hash = hash * 31 + std::visit([](const auto& value) { return hash_of(value); }, attr);
  return hash;
}

Key key_of(const ir::Node& node) {
  return {&node.op(), {node.inputs().begin(), node.inputs().end()}, hash_of(node.attrs())};
}

bool same_constant(const ir::Node& a, const ir::Node& b) {
  const Tensor &x = a.tensor("value"), &y = b.tensor("value");
  if (a.output()->type() != b.output()->type()) return false;
  return x.data() == y.data() || (x.bytes() <= kCompareBytes && x == y);
}

}  // namespace

size_t merge_common(ir::Graph& graph) {
  ir::Rewriter rewriter(graph);
  std::map<Key, std::vector<ir::Node*>> seen;
  size_t merged = 0;
  const ir::Graph::Nodes nodes = graph.nodes();
  for (auto at = nodes.begin(); at != nodes.end();) {
    ir::Node* node = *at;
    ++at;
    std::vector<ir::Node*>& candidates = seen[key_of(*node)];
    ir::Node* twin = nullptr;
    for (ir::Node* candidate : candidates) {
      if (node->is_constant() ? same_constant(*candidate, *node) : ops::same(candidate->attrs(), node->attrs())) {
        twin = candidate;
        break;
      }
    }
    if (!twin) {
      candidates.push_back(node);
      continue;
    }
    for (size_t k = 0; k < node->outputs().size(); ++k) rewriter.replace_uses(node->output(k), twin->output(k));
    rewriter.erase(node);
    ++merged;
  }
  return merged;
}

}  // namespace hetnn::passes
