// A graph that returns values from inside it, those that its loops compute in each round among them.
#include "hetnn/ir/with_outputs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/ir/body_graph.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ops/control/loop.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ir {
namespace {

std::set<std::string> symbols_of(const Graph& graph) {
  std::set<std::string> out;
  for (const Symbol& symbol : graph.symbols) out.insert(symbol.name);
  return out;
}

bool depends_only_on(const Shape& shape, const std::set<std::string>& symbols) {
  std::set<std::string> used;
  for (const Dim& dim : shape) dim.collect_symbols(used);
  return std::ranges::includes(symbols, used);
}

// What of a loop's body is wanted: values of its calls by their numbers, and the same of loops by the number of their
// call.
struct Wanted {
  std::vector<std::pair<int64_t, const Value*>> values;
  std::map<size_t, Wanted> loops;
};

// The bodies of a loop and of the loops within it, as graphs that stay where they are.
struct Bodies {
  Bodies(const Graph& around, const Node& loop) : body(numbered_body(around, loop)) {
    for (const Node* node : body.graph.nodes()) {
      if (node->is_constant()) continue;
      if (ops::is_loop(node->call())) inner.emplace(steps.size(), std::make_unique<Bodies>(body.graph, *node));
      steps.push_back(node);
    }
  }

  // Calls `visit(value, path)` for every value that a call gives, in their order; `path` are the calls that lead there.
  template <typename Visit>
  void each(const Visit& visit, std::vector<size_t> path = {}) const {
    for (size_t step = 0; step < steps.size(); ++step) {
      if (const auto at = inner.find(step); at != inner.end()) {
        path.push_back(step);
        at->second->each(visit, path);
        path.pop_back();
      }
      for (const Value* value : steps[step]->outputs()) visit(*value, number_of(value), path);
    }
  }

  int64_t number_of(const Value* value) const { return std::ranges::find(body.values, value) - body.values.begin(); }

  NumberedBody body;
  std::vector<const Node*> steps;  // by their numbers in the text
  std::map<size_t, std::unique_ptr<Bodies>> inner;
};

// Makes the attributes of loops give more; sizes that are found get names that nothing else has.
class Extender {
 public:
  explicit Extender(Graph& graph) : graph_(graph), taken_(symbols_of(graph)) {}

  struct Given {
    const Value* value;
    size_t rank;  // with the axis of rounds
  };

  // What the loop gives behind what it gave, in order. Only those of `graph` declare the sizes that they find.
  std::vector<Given> extend(const Node& loop, Attrs& attrs, const Bodies& bodies, const Wanted& wanted,
                            bool is_outermost) {
    ops::Call call{&loop.op(), {}, {}, attrs, loop.name(), loop.loc()};
    std::vector<Dim> around;
    const size_t outer = std::get<std::vector<Dim>>(attrs.at("outer")).size();
    for (size_t k = 0; k < outer; ++k) around.push_back(Dim::symbol(text("outer", k)));
    call.attrs["outer"] = around;
    ops::Body body = ops::read_body(call, "body");

    std::vector<Given> stacked, appended;
    std::vector<int64_t> numbers, inner_numbers, shift(bodies.body.values.size() + 1, 0);
    size_t first = bodies.body.values.size();  // of the values of calls
    for (const Node* step : bodies.steps) first -= step->outputs().size();
    int64_t more = 0;
    for (size_t k = 0, number = first; k < bodies.steps.size(); ++k) {
      for (const size_t end = number + bodies.steps[k]->outputs().size(); number < end; ++number) shift[number] = more;
      const auto at = wanted.loops.find(k);
      if (at == wanted.loops.end()) continue;
      Attrs& inner = body.steps[k].attrs;
      for (const char* list : {"outer", "sizes", "appended"}) inner.try_emplace(list, std::vector<Dim>());
      inner.try_emplace("stacks", std::string());
      for (const Given& one : extend(*bodies.steps[k], inner, *bodies.inner.at(k), at->second, false)) {
        appended.push_back(one);
        inner_numbers.push_back(static_cast<int64_t>(number) + more++);
      }
    }
    const auto moved = [&](int64_t number) {
      return number < 0 ? number : number + shift.at(static_cast<size_t>(number));
    };
    for (ops::Body::Node& step : body.steps) std::ranges::transform(step.inputs, step.inputs.begin(), moved);
    std::ranges::transform(body.outputs, body.outputs.begin(), moved);

    for (const auto& [number, value] : wanted.values) {
      if (value->type().quant) {
        throw Unsupported(text("'", value->name(), "' is within what '", loop.name(),
                               "' repeats, and has integers for reals, which are not kept of every round. Ask for '",
                               loop.name(), "'."));
      }
      stacked.push_back({value, value->shape().size() + 1});
      numbers.push_back(moved(number));
    }
    const size_t before = body.outputs.size() - 1 - static_cast<size_t>(ops::fixed_integer(loop.call(), "carried"));
    numbers.insert(numbers.end(), inner_numbers.begin(), inner_numbers.end());
    body.outputs.insert(body.outputs.end(), numbers.begin(), numbers.end());
    attrs["body"] = ops::write_body(body);
    auto& stacks = std::get<std::string>(attrs.at("stacks"));
    auto& sizes = std::get<std::vector<Dim>>(attrs.at("sizes"));
    auto& joined = std::get<std::vector<Dim>>(attrs["appended"]);
    const bool told = !stacks.empty();
    const auto add = [&](const Given& one, size_t rank) {
      if (told) stacks += text(" ", dtype_name(one.value->dtype()), ":", rank);
      for (const Dim& dim : one.value->shape()) sizes.push_back(dim.is_static() ? dim : found(is_outermost));
    };
    for (const Given& one : stacked) add(one, one.rank - 1);
    for (const Given& one : appended) {
      joined.emplace_back(static_cast<int64_t>(before + stacked.size() + (&one - appended.data())));
      sizes.push_back(found(is_outermost));
      add(one, one.rank);
    }
    stacked.insert(stacked.end(), appended.begin(), appended.end());
    return stacked;
  }

 private:
  // A size that a run finds, under a name that is not taken.
  Dim found(bool declared) {
    std::string name;
    do {
      name = text("observed", next_++);
    } while (taken_.contains(name));
    if (declared) graph_.symbols.push_back({.name = name, .min = 0});
    return Dim::symbol(name);
  }

  Graph& graph_;
  const std::set<std::string> taken_;
  size_t next_ = 0;
};

// Puts a loop that gives more in the place of one; what it was gives its uses and names to what it becomes. The new
// outputs, in order.
std::vector<Value*> replace(Rewriter& rewriter, Node* loop, Attrs attrs) {
  rewriter.insert_after(loop);
  Node* made = rewriter.create(loop->op().name, loop->inputs(), std::move(attrs), loop->name(), loop->loc());
  const size_t before = loop->outputs().size();
  for (size_t k = 0; k < before; ++k) {
    rewriter.replace_uses(loop->output(k), made->output(k));
    rewriter.rename(made->output(k), loop->output(k)->name());
  }
  rewriter.erase(loop);
  return {made->outputs().begin() + static_cast<ptrdiff_t>(before), made->outputs().end()};
}

}  // namespace

std::vector<RepeatedValue> repeated_values(const Graph& graph) {
  const std::set<std::string> outside = symbols_of(graph);
  std::vector<RepeatedValue> out;
  for (const Node* node : graph.nodes()) {
    if (!ops::is_loop(node->call())) continue;
    Bodies(graph, *node).each([&](const Value& value, int64_t, const std::vector<size_t>&) {
      out.push_back({value.name(), node->name(), depends_only_on(value.shape(), outside)});
    });
  }
  return out;
}

Graph with_outputs(const Graph& graph, const std::vector<std::string>& names) {
  Graph out = graph.clone();
  Rewriter rewriter(out);
  std::set<std::string> within;
  for (const std::string& name : names) {
    if (!out.find_value(name)) within.insert(name);
  }
  std::map<std::string, Value*> made;
  Extender extender(out);
  std::vector<Node*> loops;
  for (Node* node : out.nodes()) {
    if (!within.empty() && ops::is_loop(node->call())) loops.push_back(node);
  }
  for (Node* loop : loops) {
    const Bodies bodies(out, *loop);
    Wanted wanted;
    bodies.each([&](const Value& value, int64_t number, const std::vector<size_t>& path) {
      if (within.erase(value.name()) == 0) return;
      Wanted* at = &wanted;
      for (const size_t step : path) at = &at->loops[step];
      at->values.emplace_back(number, &value);
    });
    if (wanted.values.empty() && wanted.loops.empty()) continue;
    Attrs attrs = loop->attrs();
    const std::vector<Extender::Given> given = extender.extend(*loop, attrs, bodies, wanted, true);
    const std::vector<Value*> values = replace(rewriter, loop, std::move(attrs));
    for (size_t k = 0; k < values.size(); ++k) made[given[k].value->name()] = values[k];
  }
  for (const std::string& name : names) {
    Value* own = out.find_value(name);
    const auto at = made.find(name);
    if (at == made.end() && !own) throw InvalidModel(text("the graph has no value '", name, "'."));
    rewriter.add_output(at == made.end() ? own : at->second, "observed " + name);
  }
  return out;
}

}  // namespace hetnn::ir
