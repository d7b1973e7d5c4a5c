// Building and editing graphs.
#include "hetnn/ir/rewriter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ops/demand.h"

namespace hetnn::ir {
Value* Rewriter::add_input(std::string_view name, Type type) {
  if (const auto fault = ops::shape_fault(type.shape))
    throw InvalidModel(text("the input '", name, "': ", *fault, ". Check its sizes."));
  if (const auto fault = ops::quant_fault(type)) throw InvalidModel(text("the input '", name, "' ", fault->text, "."));
  auto value = std::unique_ptr<Value>(new Value(graph_.unique_name(name), std::move(type), nullptr));
  Value* pointer = value.get();
  graph_.names_.emplace(pointer->name_, pointer);
  graph_.inputs_.push_back(std::move(value));
  return pointer;
}

void Rewriter::add_output(Value* value, std::string_view name) {
  graph_.outputs_.push_back(value);
  graph_.output_names.emplace_back(name.empty() ? value->name() : std::string(name));
}

void Rewriter::set_output(size_t index, Value* value) {
  HETNN_ASSERT(index < graph_.outputs_.size());
  graph_.outputs_[index] = value;
}

void Rewriter::insert_before(const Node* node) { at_ = node ? node->position_ : graph_.nodes_.end(); }
void Rewriter::insert_after(const Node* node) { at_ = std::next(node->position_); }

Node* Rewriter::create(std::string_view op, std::vector<Value*> inputs, Attrs attrs, std::string_view name, Loc loc) {
  auto node = std::unique_ptr<Node>(new Node());
  while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
  node->inputs_ = std::move(inputs);
  ops::Call& call = node->call_;
  call.op = &ops::OpTable::global().get(op);
  call.attrs = std::move(attrs);
  call.name = name.empty() ? call.op->name : name;
  call.loc = std::move(loc);
  if (call.loc == Loc{} && at_ != graph_.nodes_.end()) call.loc = (*at_)->loc();
  call.inputs.resize(node->inputs_.size());
  for (size_t k = 0; k < node->inputs_.size(); ++k) tell(node.get(), k);
  complete(call);
  const std::string base = call.name;
  std::vector<Type> types = infer_types(call);
  Node* pointer = node.get();
  try {
    for (Type& type : types) {
      node->outputs_.push_back(
          std::unique_ptr<Value>(new Value(graph_.unique_name(base), std::move(type), node.get())));
      Value* output = node->outputs_.back().get();
      node->output_pointers_.push_back(output);
      call.outputs.push_back(&output->type_);
      graph_.names_.emplace(output->name_, output);
    }
    if (!node->outputs_.empty()) call.name = node->output()->name_;
    for (size_t k = 0; k < node->inputs_.size(); ++k) {
      if (node->inputs_[k]) node->inputs_[k]->uses_.push_back({node.get(), k});
    }
    created_.push_back(pointer);
    pointer->position_ = graph_.nodes_.insert(at_, std::move(node));
  } catch (...) {  // no memory: as if nothing had been asked for
    std::erase(created_, pointer);
    for (Value* input : pointer->inputs_) {
      if (input) std::erase_if(input->uses_, [&](const Use& use) { return use.node == pointer; });
    }
    for (const auto& output : pointer->outputs_) graph_.names_.erase(output->name_);
    throw;
  }
  return pointer;
}

Value* Rewriter::constant(Tensor value, std::string_view name, const std::optional<Quant>& quant) {
  Attrs attrs = quant ? ops::quant_attrs(*quant) : Attrs{};
  attrs.emplace("value", std::move(value));
  return add(ops::kConstant, {}, std::move(attrs), name.empty() ? "const" : name);
}

void Rewriter::tell(Node* node, size_t index) {
  const Value* value = node->inputs_[index];
  const bool constant = value && value->producer() && value->producer()->is_constant();
  node->call_.inputs[index] = {value ? &value->type_ : nullptr,
                               constant ? &value->producer()->tensor("value") : nullptr};
}

void Rewriter::infer_again(Node* node) {
  std::vector<Type> types = infer_types(node->call_);
  for (size_t k = 0; k < types.size(); ++k) node->outputs_[k]->type_ = std::move(types[k]);
}

void Rewriter::drop_use(Value* value, Node* node, size_t index) {
  auto at = std::find(value->uses_.begin(), value->uses_.end(), Use{node, index});
  HETNN_ASSERT(at != value->uses_.end(), "use list of '", value->name(), "' misses ", describe(*node));
  *at = value->uses_.back();
  value->uses_.pop_back();
}

void Rewriter::replace_uses(Value* from, Value* to) {
  HETNN_ASSERT(from->type() == to->type(), "'", from->name(), "' is ", to_string(from->type()), ", '", to->name(),
               "' is ", to_string(to->type()));
  if (from == to) return;
  for (const Use& use : from->uses_) {
    use.node->inputs_[use.index] = to;
    tell(use.node, use.index);
    to->uses_.push_back(use);
  }
  from->uses_.clear();
  std::replace(graph_.outputs_.begin(), graph_.outputs_.end(), from, to);
}

void Rewriter::set_input(Node* node, size_t index, Value* to) {
  HETNN_ASSERT(index < node->inputs_.size());
  Value* from = node->inputs_[index];
  if (from == to) return;
  if (from) drop_use(from, node, index);
  node->inputs_[index] = to;
  if (to) to->uses_.push_back({node, index});
  tell(node, index);
  infer_again(node);
}

void Rewriter::set_attr(Node* node, std::string_view attr, Attr value) {
  auto at = node->call_.attrs.find(attr);
  HETNN_ASSERT(at != node->call_.attrs.end() && at->second.index() == value.index(), describe(*node), " attribute ",
               attr);
  at->second = std::move(value);
  infer_again(node);
}

void Rewriter::forget(Node* constant) { std::get<Tensor>(constant->call_.attrs.at("value")).forget(); }

void Rewriter::erase(Node* node) {
  for (const Value* output : node->outputs()) {
    HETNN_ASSERT(output->uses().empty() && !graph_.is_output(output), describe(*node), " is still read");
    graph_.names_.erase(output->name());
  }
  for (size_t k = 0; k < node->inputs_.size(); ++k) {
    if (node->inputs_[k]) drop_use(node->inputs_[k], node, k);
  }
  std::erase(created_, node);
  if (at_ == node->position_) ++at_;
  graph_.nodes_.erase(node->position_);
}

size_t Rewriter::erase_dead() {
  size_t erased = 0;
  const bool defines = !definers(graph_).empty();
  std::set<std::string> needed;  // symbols, by the nodes behind
  for (auto at = graph_.nodes_.end(); at != graph_.nodes_.begin();) {
    --at;
    Node* node = at->get();
    const std::vector<std::string> defined = ops::defined_symbols(node->call());
    const bool dead =
        !ops::demands(node->call()) &&
        std::all_of(node->outputs().begin(), node->outputs().end(),
                    [&](const Value* output) { return output->uses().empty() && !graph_.is_output(output); }) &&
        std::none_of(defined.begin(), defined.end(),
                     [&](const std::string& symbol) { return needed.contains(symbol); });
    if (!dead) {
      if (defines) ops::collect_needed_symbols(node->call(), needed);
      continue;
    }
    for (const std::string& symbol : defined)
      std::erase_if(graph_.symbols, [&](const Symbol& declared) { return declared.name == symbol; });
    ++at;
    erase(node);
    ++erased;
  }
  return erased;
}

Node* Rewriter::copy(const Node& node, std::map<const Value*, Value*>& twins, Attrs attrs) {
  std::vector<Value*> inputs;
  for (const Value* input : node.inputs()) inputs.push_back(input ? twins.at(input) : nullptr);
  Node* made = create(node.op().name, std::move(inputs), std::move(attrs), {}, node.loc());
  for (size_t k = 0; k < node.outputs().size(); ++k) {
    rename(made->output(k), node.output(k)->name());
    twins[node.output(k)] = made->output(k);
  }
  made->aliases = node.aliases;
  made->device = node.device;
  made->subgraph = node.subgraph;
  made->launch = node.launch;
  return made;
}

void Rewriter::rename(Value* value, std::string_view wanted) {
  const std::string name(wanted);  // `wanted` may be the holder's own name, which is cleared below
  if (value->name() == name) return;
  Value* holder = graph_.find_value(name);
  graph_.names_.erase(value->name());
  if (holder) {
    graph_.names_.erase(holder->name());
    holder->name_.clear();
  }
  const auto give = [&](Value* to) {
    to->name_ = graph_.unique_name(name);
    graph_.names_.emplace(to->name_, to);
    if (Node* node = to->producer(); node && node->output() == to) node->call_.name = to->name_;
  };
  give(value);
  if (holder) give(holder);
}

void Rewriter::move_before(Node* node, const Node* before) {
  auto target = before ? before->position_ : graph_.nodes_.end();
  graph_.nodes_.splice(target, graph_.nodes_, node->position_);
}

std::vector<Node*> Rewriter::take_created() { return std::exchange(created_, {}); }

}  // namespace hetnn::ir
