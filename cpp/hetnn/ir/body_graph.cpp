// The body of a loop as a graph of its own.
#include "hetnn/ir/body_graph.h"

#include <algorithm>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ops/control/loop.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ir {
namespace {

class Builder {
 public:
  Builder(const Graph& around, const Node& loop)
      : around_(around), loop_(loop), body_(ops::read_body(loop.call(), "body")), graph_(loop.name()) {}

  Graph run() {
    fill();
    for (size_t k = 0; k < body_.outputs.size(); ++k) {
      rewriter_.add_output(values_.at(static_cast<size_t>(body_.outputs[k])), text("out", k));
    }
    rewriter_.erase_dead();
    drop_unused_symbols(graph_);
    raise_hints(graph_);
    return std::move(graph_);
  }

  NumberedBody numbered() {
    fill();
    return {std::move(graph_), std::move(values_)};
  }

 private:
  // Inputs and calls, without outputs.
  void fill() {
    const std::vector<Type> types = ops::body_inputs(loop_.call(), body_);
    std::set<std::string> given, named;
    for (size_t k = 0; k < types.size(); ++k) {
      if (is_constant_of_body(loop_, k)) continue;
      for (const Dim& dim : types[k].shape) {
        if (const std::string symbol = ops::symbol_name(dim); !symbol.empty()) given.insert(symbol);
        dim.collect_symbols(named);
      }
    }
    for (const ops::Body::Node& step : body_.steps) {
      const ops::Call call{step.op, {}, {}, step.attrs, {}, {}};
      ops::collect_symbols(call, named);
      for (std::string& symbol : ops::defined_symbols(call)) given.insert(std::move(symbol));
    }
    for (const std::string& symbol : named) declare(symbol);
    for (size_t k = 0; k < types.size(); ++k) add_input(k, types[k]);
    for (const std::string& symbol : named) {
      if (!given.contains(symbol)) rewriter_.add_input(symbol, {DType::i8, {Dim::symbol(symbol)}});
    }
    for (const ops::Body::Node& step : body_.steps) add(step);
    for (const Node* node : graph_.nodes()) {
      for (const Value* output : node->outputs()) are_sizes(output->shape());
    }
  }

  // Sizes that the body finds, or takes with other values in each round, have no range that is known.
  void declare(const std::string& name) {
    const auto at = std::ranges::find(around_.symbols, name, &Symbol::name);
    graph_.symbols.push_back(at != around_.symbols.end() ? *at : Symbol{.name = name, .min = INT64_MIN});
    for (const auto& [input, sizes] : body_.taken) {
      if (std::ranges::find(sizes, name) != sizes.end()) graph_.symbols.back().min = 0;
    }
  }

  // What is as long as an axis of a value is not negative.
  void are_sizes(const Shape& shape) {
    for (const Dim& dim : shape) {
      const auto at = std::ranges::find(graph_.symbols, ops::symbol_name(dim), &Symbol::name);
      if (at != graph_.symbols.end()) at->min = std::max<int64_t>(at->min, 0);
    }
  }

  void add_input(size_t k, const Type& type) {
    const std::string name = text("in", k);
    values_.push_back(is_constant_of_body(loop_, k) ? rewriter_.constant(*loop_.constant_input(k), name, type.quant)
                                                    : rewriter_.add_input(name, type));
  }

  void add(const ops::Body::Node& step) {
    std::vector<Value*> inputs;
    for (const int64_t k : step.inputs) inputs.push_back(k < 0 ? nullptr : values_.at(static_cast<size_t>(k)));
    const Node* node = rewriter_.create(step.op->name, std::move(inputs), step.attrs,
                                        text(loop_.name(), ".", step.op->name), loop_.loc());
    values_.insert(values_.end(), node->outputs().begin(), node->outputs().end());
  }

  const Graph& around_;
  const Node& loop_;
  const ops::Body body_;
  Graph graph_;
  Rewriter rewriter_{graph_};
  std::vector<Value*> values_;
};

}  // namespace

Graph body_graph(const Graph& around, const Node& loop) { return Builder(around, loop).run(); }

NumberedBody numbered_body(const Graph& around, const Node& loop) { return Builder(around, loop).numbered(); }

bool is_constant_of_body(const Node& loop, size_t index) {
  return index >= ops::kBeforeValues + ops::carried_values(loop.call()) && loop.constant_input(index);
}

}  // namespace hetnn::ir
