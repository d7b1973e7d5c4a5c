// Stretches by dynamic programming over the nodes of a subgraph.
#include "hetnn/plan/blocks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"

namespace hetnn::plan {
namespace {

// Predictions are not that exact: of the time at once the whole must save so much, and each change of blocks.
constexpr double kLeastSaving = 0.05, kLeastSavingOfChange = 0.02;
constexpr int64_t kMostBlocks = 256;

// Of entries that one scale stands for.
bool is_batch(const ops::Type& type, int64_t entries) {
  const bool apart = type.quant && type.quant->scales.size() > 1 && type.quant->axis == 0;
  return !type.shape.empty() && type.shape[0] == Dim(entries) && !apart;
}

ops::Type with_entries(ops::Type type, int64_t entries) {
  type.shape[0] = entries;
  return type;
}

// Whether the node computes the entries of the batches among its inputs apart, and its outputs are such batches.
bool runs_in_blocks(const ir::Node& node, int64_t entries) {
  ops::Call call = node.call();
  std::unique_ptr<bool[]> batched(new bool[call.inputs.size()]);
  std::vector<ops::Type> types(call.inputs.size());
  for (size_t k = 0; k < call.inputs.size(); ++k)
    batched[k] = call.has(k) && !call.constant(k) && is_batch(call.input(k), entries);
  const auto is_batch_here = [&](const ir::Value* value) { return is_batch(value->type(), entries); };
  if (!std::ranges::all_of(node.outputs(), is_batch_here) ||
      !ops::keeps_batch(call, {batched.get(), call.inputs.size()}))
    return false;
  call.attrs = ops::attrs_of_entries(call, 1);
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    if (!batched[k]) continue;
    types[k] = with_entries(call.input(k), 1);
    call.inputs[k].type = &types[k];
  }
  call.outputs.clear();
  try {
    const std::vector<ops::Type> made = ops::infer_types(call);
    return std::ranges::equal(made, node.outputs(), [](const ops::Type& type, const ir::Value* value) {
      return type == with_entries(value->type(), 1);
    });
  } catch (const InvalidModel&) {
    return false;
  }
}

// Whether the value's only reader would be a step in the launch of its producer.
bool would_be_step(const ir::Value& value, const std::set<const ir::Node*>& behind) {
  if (value.uses().size() != 1) return false;
  const ir::Node& reader = *value.uses().front().node;
  return reader.op().has(ops::Trait::elementwise) && std::ranges::none_of(reader.inputs(), [&](const ir::Value* input) {
           return input && input->producer() && behind.contains(input->producer());
         });
}

class Stretches {
 public:
  Stretches(const ir::Graph& graph, const Subgraph& subgraph, const target::Device& device)
      : graph_(graph), subgraph_(subgraph), device_(device) {}

  std::vector<Stretch> run() {
    std::vector<Stretch> whole = {{0, subgraph_.nodes.size(), 1}};
    const std::optional<int64_t> entries = entries_of();
    if (!entries) return whole;
    for (const ir::Node* node : subgraph_.nodes) apart_.push_back(runs_in_blocks(*node, *entries));
    if (std::ranges::find(apart_, true) == apart_.end()) return whole;
    for (int64_t blocks = 1; blocks <= std::min(*entries, kMostBlocks); ++blocks)
      if (*entries % blocks == 0 && (choices_.empty() || blocks >= 2 * choices_.back())) choices_.push_back(blocks);
    find_cuts();
    predict();
    return best(whole);
  }

 private:
  std::optional<int64_t> entries_of() const {
    if (subgraph_.inputs.empty()) return std::nullopt;
    const Shape& shape = subgraph_.inputs.front()->shape();
    if (shape.empty() || !shape[0].is_static() || shape[0].value() < 2) return std::nullopt;
    return shape[0].value();
  }

  // Before which nodes one stretch may end and another begin.
  void find_cuts() {
    const std::vector<ir::Node*>& nodes = subgraph_.nodes;
    std::map<const ir::Value*, size_t> last_read;
    for (size_t k = 0; k < nodes.size(); ++k)
      for (const ir::Value* input : nodes[k]->inputs())
        if (input) last_read[input] = k;
    std::set<const ir::Node*> behind(nodes.begin(), nodes.end());
    std::set<const ir::Value*> alive;
    for (size_t k = 0; k < nodes.size(); ++k) {
      cuts_.push_back(k > 0 && alive.size() == 1 && !would_be_step(**alive.begin(), behind));
      behind.erase(nodes[k]);
      for (const ir::Value* output : nodes[k]->outputs())
        if (const auto at = last_read.find(output); at != last_read.end() && at->second > k) alive.insert(output);
      std::erase_if(alive, [&](const ir::Value* value) { return last_read.at(value) <= k; });
    }
  }

  // The time of every node, elementwise ones for nothing: they are steps of others.
  void predict() {
    us_.assign(subgraph_.nodes.size(), std::vector<double>(choices_.size(), kNever));
    const Bindings hints = graph_.hints();
    const auto time_us = [&](const ir::Node& node) {
      return node.op().has(ops::Trait::elementwise) ? 0.0 : device_.time_us(node, hints);
    };
    for (size_t k = 0; k < subgraph_.nodes.size(); ++k) us_[k][0] = time_us(*subgraph_.nodes[k]);
    for (size_t begin = 0; begin < apart_.size(); ++begin) {
      if (!apart_[begin]) continue;
      const auto end = static_cast<size_t>(
          std::find(apart_.begin() + static_cast<ptrdiff_t>(begin), apart_.end(), false) - apart_.begin());
      const ir::Graph run = stretch_graph(begin, end);
      for (size_t c = 1; c < choices_.size(); ++c) {
        const ir::Graph block = block_of(run, choices_[c]);
        size_t k = begin;
        for (const ir::Node* node : block.nodes())
          if (!node->is_constant()) us_[k++][c] = static_cast<double>(choices_[c]) * time_us(*node);
      }
      begin = end;
    }
  }

  ir::Graph stretch_graph(size_t begin, size_t end) const {
    const auto first = subgraph_.nodes.begin();
    return extract(graph_,
                   subgraph_of_nodes(graph_, subgraph_.device,
                                     {first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end)}));
  }

  // Each block is a launch.
  double launches_us(size_t choice) const { return device_.launch_us() * static_cast<double>(choices_[choice]); }

  std::vector<Stretch> best(const std::vector<Stretch>& whole) const {
    const size_t count = choices_.size();
    std::vector<double> so_far(count);
    for (size_t c = 0; c < count; ++c) so_far[c] = launches_us(c);
    std::vector<std::vector<size_t>> from;  // [node][choice]: that of the node before
    double at_once_us = so_far[0];
    for (const std::vector<double>& node : us_) at_once_us += node[0];
    const auto change_us = [&](size_t c) { return launches_us(c) + kLeastSavingOfChange * at_once_us; };
    for (size_t k = 0; k < us_.size(); ++k) {
      const auto least = static_cast<size_t>(std::ranges::min_element(so_far) - so_far.begin());
      std::vector<size_t>& came = from.emplace_back();
      std::vector<double> next;
      for (size_t c = 0; c < count; ++c) {
        const bool changes = cuts_[k] && so_far[least] + change_us(c) < so_far[c];
        came.push_back(changes ? least : c);
        next.push_back((changes ? so_far[least] + change_us(c) : so_far[c]) + us_[k][c]);
      }
      so_far = std::move(next);
    }
    const auto last = static_cast<size_t>(std::ranges::min_element(so_far) - so_far.begin());
    if (so_far[last] >= (1 - kLeastSaving) * at_once_us) return whole;
    std::vector<Stretch> out;
    size_t choice = last, end = us_.size();
    for (size_t k = us_.size(); k-- > 0;) {
      const size_t before = from[k][choice];
      if (k > 0 && before == choice) continue;
      out.push_back({k, end, choices_[choice]});
      end = k;
      choice = before;
    }
    std::ranges::reverse(out);
    return out;
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  const ir::Graph& graph_;
  const Subgraph& subgraph_;
  const target::Device& device_;
  std::vector<bool> apart_, cuts_;       // of every node
  std::vector<int64_t> choices_;         // numbers of blocks
  std::vector<std::vector<double>> us_;  // [node][choice], of all blocks
};

}  // namespace

std::vector<Stretch> stretches_of(const ir::Graph& graph, const Subgraph& subgraph, const target::Device& device) {
  return Stretches(graph, subgraph, device).run();
}

ir::Graph block_of(const ir::Graph& stretch, int64_t blocks) {
  const int64_t entries = stretch.outputs().front()->shape()[0].value();
  HETNN_ASSERT(entries % blocks == 0, entries, " entries in ", blocks, " blocks");
  ir::Graph out(stretch.name());
  out.stage = stretch.stage;
  out.symbols = stretch.symbols;
  ir::Rewriter rewriter(out);
  std::map<const ir::Value*, ir::Value*> twin;
  const auto type_in_block = [&](const ir::Value& value) {
    return is_batch(value.type(), entries) ? with_entries(value.type(), entries / blocks) : value.type();
  };
  for (const ir::Value* input : stretch.inputs())
    twin[input] = rewriter.add_input(input->name(), type_in_block(*input));
  for (const ir::Node* node : stretch.nodes()) {
    const ir::Node* made = rewriter.copy(
        *node, twin, node->is_constant() ? node->attrs() : ops::attrs_of_entries(node->call(), entries / blocks));
    for (size_t k = 0; k < node->outputs().size(); ++k)
      HETNN_ASSERT(node->is_constant() || made->output(k)->type() == type_in_block(*node->output(k)),
                   ir::describe(*node), " gives ", ops::to_string(made->output(k)->type()), " in blocks");
  }
  for (size_t k = 0; k < stretch.outputs().size(); ++k)
    rewriter.add_output(twin.at(stretch.outputs()[k]), stretch.output_names[k]);
  return out;
}

}  // namespace hetnn::plan
