// Evaluates gradient rules: arithmetic of tensors makes nodes, that of sizes is done at once.
#include "hetnn/passes/gradient_values.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "hetnn/base/error.h"
#include "hetnn/ops/elementwise/readings.h"
#include "hetnn/ops/meaning.h"
#include "hetnn/passes/gradient_functions.h"

namespace hetnn::passes {
namespace {

Dim divided(const Dim& a, const Dim& b) { return floor_div(a, b); }
double divided(double a, double b) { return a / b; }

template <typename T>
T computed(char sign, const T& a, const T& b) {
  switch (sign) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    default:
      return divided(a, b);
  }
}

bool same_items(const Item& a, const Item& b) {
  if (const auto* dtype = std::get_if<DType>(&a)) {
    const auto* name = std::get_if<std::string>(&b);
    return name ? dtype_name(*dtype) == *name : std::get<DType>(b) == *dtype;
  }
  if (a.index() != b.index()) return false;
  if (is<Dim>(a)) return std::get<Dim>(a) == std::get<Dim>(b);
  if (is<bool>(a)) return std::get<bool>(a) == std::get<bool>(b);
  if (is<Dims>(a)) return std::get<Dims>(a) == std::get<Dims>(b);
  if (is<double>(a)) return std::get<double>(a) == std::get<double>(b);
  return is<std::string>(a) && std::get<std::string>(a) == std::get<std::string>(b);
}

std::optional<ops::Attr> attr_of(ops::AttrKind kind, const Item& item) {
  using ops::AttrKind;
  const auto taken = [&]<typename T>(const T*) -> std::optional<ops::Attr> {
    if (const auto* found = std::get_if<T>(&item)) return *found;
    return std::nullopt;
  };
  if (kind == AttrKind::integers) return is<Dims>(item) || is<Dim>(item) ? std::optional(listed(item)) : std::nullopt;
  if (kind == AttrKind::real) {
    const auto real = real_in(item);
    return real ? std::optional<ops::Attr>(*real) : std::nullopt;
  }
  if (kind == AttrKind::integer) return taken(static_cast<const Dim*>(nullptr));
  if (kind == AttrKind::boolean) return taken(static_cast<const bool*>(nullptr));
  if (kind == AttrKind::string) return taken(static_cast<const std::string*>(nullptr));
  if (kind == AttrKind::dtype) return taken(static_cast<const DType*>(nullptr));
  return taken(static_cast<const std::vector<double>*>(nullptr));
}

Item item_of(const ops::Attr& attr) {
  return std::visit(
      [](const auto& held) -> Item {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, Tensor>) {
          return Absent{};
        } else {
          return held;
        }
      },
      attr);
}

}  // namespace

ir::Node* Maker::node(std::string_view op, std::vector<ir::Value*> inputs, ops::Attrs attrs) {
  const std::string name = of_ ? of_->name() + ".gradient" : "gradient";
  ir::Node* made = rewriter_.create(op, std::move(inputs), std::move(attrs), name, of_ ? of_->loc() : ops::Loc{});
  made_.push_back(made);
  return made;
}

ir::Value* Maker::number(DType dtype, double value) {
  ir::Value*& known = numbers_[{dtype, value}];
  if (!known) {
    std::byte* data = nullptr;
    Tensor tensor = Tensor::zeros(dtype, {}, &data);
    ops::write_as<double>({dtype, {}, data}, {&value, 1});
    known = rewriter_.constant(std::move(tensor), "number");
  }
  return known;
}

ir::Value* Maker::full(DType dtype, double value, const Shape& shape) {
  return shape.empty() ? number(dtype, value) : op("expand", {number(dtype, value)}, {{"shape", shape}});
}

ir::Value* Maker::size(DType dtype, const Dim& dim) {
  if (dim.is_static()) return number(dtype, static_cast<double>(dim.value()));
  ir::Value* found = op("arange", {}, {{"start", dim}, {"end", dim + 1}});
  return op("cast", {found}, {{"to", dtype}});
}

Dim Maker::found(const Dim& dim) {
  if (dim.is_static()) return dim;
  std::vector<Symbol>& symbols = rewriter_.graph().symbols;
  std::string name;
  for (size_t k = 0; name.empty() || std::ranges::find(symbols, name, &Symbol::name) != symbols.end(); ++k)
    name = text("found", k);
  symbols.push_back({.name = name, .min = 0, .hint = dim.evaluate(rewriter_.graph().hints())});
  return Dim::symbol(name);
}

ir::Value* Maker::formula(const ops::Expression& formula, const std::map<std::string, ir::Value*>& operands,
                          DType dtype) {
  std::map<const void*, ir::Value*> known;
  const std::function<ir::Value*(const ops::Expression&)> make = [&](const ops::Expression& term) -> ir::Value* {
    if (term.op().empty()) return term.name().empty() ? number(dtype, term.number()) : operands.at(term.name());
    if (const auto found = known.find(term.identity()); found != known.end()) return found->second;
    std::vector<ir::Value*> in;
    for (const ops::Expression& each : term.in()) in.push_back(make(each));
    return known[term.identity()] = op(term.op(), std::move(in));
  };
  return make(formula);
}

void RuleAt::fail(const std::string& what) const {
  throw InternalError(text("the gradient rule of ", node_.op().name, ": ", what, " at ", ir::describe(node_)));
}

const Statement* RuleAt::statement(std::string_view name, bool is_gradient) {
  for (const Statement& each : rule_) {
    if (each.name != name || each.is_gradient != is_gradient) continue;
    if (each.condition.empty() || std::get<bool>(evaluate(each.condition[0]))) return &each;
  }
  return nullptr;
}

bool RuleAt::has_meaning(size_t output) const {
  return std::ranges::any_of(
      rule_, [&](const Statement& each) { return !each.is_gradient && each.name == node_.op().outputs[output]; });
}

ir::Value* RuleAt::meaning(size_t output) {
  const Statement* found = statement(node_.op().outputs[output], false);
  return found ? value(evaluate(found->value)) : nullptr;
}

std::optional<ir::Value*> RuleAt::gradient(size_t input) {
  const auto& defs = node_.op().inputs;
  const size_t first = std::min(input, defs.size() - 1);
  if (place_ != input - first) known_.clear();
  place_ = input - first;
  const Statement* found = statement(defs[first].name, true);
  if (!found) return std::nullopt;
  const Item item = evaluate(found->value);
  return is<Zero>(item) ? nullptr : tensor(item, node_.input(input)->dtype());
}

Item RuleAt::named(const std::string& name) {
  if (const auto found = known_.find(name); found != known_.end()) return found->second;
  const ops::OpDef& op = node_.op();
  if (const int input = op.input_index(name); input >= 0) {
    const bool is_many = op.inputs[static_cast<size_t>(input)].variadic;
    ir::Value* found = node_.input(static_cast<size_t>(input) + (is_many ? place_ : 0));
    return found ? Item(found) : Absent{};
  }
  const auto output = std::ranges::find(op.outputs, name);
  if (output != op.outputs.end()) return node_.output(static_cast<size_t>(output - op.outputs.begin()));
  if (const auto attr = node_.attrs().find(name); attr != node_.attrs().end()) return item_of(attr->second);
  if (const Statement* local = statement(name, false)) return known_[name] = evaluate(local->value);
  if (name == "true" || name == "false") return name == "true";
  if (name == "_") return Absent{};
  fail(text("there is no '", name, "'"));
}

Item RuleAt::cotangent(const Term& term) {
  const auto& names = node_.op().outputs;
  const auto at = std::ranges::find(names, term.in.at(0).text);
  if (at == names.end()) fail(text("there is no output '", term.in[0].text, "'"));
  ir::Value* came = came_[static_cast<size_t>(at - names.begin())];
  return came ? Item(came) : Zero{};
}

ir::Value* RuleAt::tensor(const Item& item, DType dtype) {
  if (const auto* node = std::get_if<ir::Node*>(&item)) return (*node)->output();
  if (const auto* value = std::get_if<ir::Value*>(&item)) return *value;
  if (const auto real = real_in(item)) return maker_.number(dtype, *real);
  if (const auto* dim = std::get_if<Dim>(&item)) return maker_.size(dtype, *dim);
  if (is<Absent>(item)) return nullptr;
  fail("expected a tensor");
}

Item RuleAt::evaluate(const Term& term) {
  using Kind = Term::Kind;
  switch (term.kind) {
    case Kind::integer:
      return Dim(static_cast<int64_t>(term.number));
    case Kind::real:
      return term.number;
    case Kind::string:
      return term.text;
    case Kind::name:
      return named(term.text);
    case Kind::call:
      return call(term);
    case Kind::list: {
      Arguments items;
      for (const Term& each : term.in) items.push_back(evaluate(each));
      if (std::ranges::any_of(items, is<double>)) {
        std::vector<double> reals;
        for (const Item& each : items) reals.push_back(real_in(each).value());
        return reals;
      }
      Dims out;
      for (const Item& each : items) out.push_back(std::get<Dim>(each));
      return out;
    }
    case Kind::infix:
      if (term.text == "and") return std::get<bool>(evaluate(term.in[0])) && std::get<bool>(evaluate(term.in[1]));
      return infix(term.text, evaluate(term.in[0]), evaluate(term.in[1]));
    case Kind::negate: {
      Item of = evaluate(term.in[0]);
      if (value_in(of)) return maker_.op("neg", {value(of)});
      return is<Zero>(of) ? of : infix("-", is<double>(of) ? Item(0.0) : Item(Dim(0)), of);
    }
    case Kind::field: {
      Item of = evaluate(term.in[0]);
      if (is<Zero>(of)) return of;
      const ir::Node* node = std::get<ir::Node*>(of);
      const auto& names = node->op().outputs;
      return node->output(static_cast<size_t>(std::ranges::find(names, term.text) - names.begin()));
    }
    case Kind::entry: {
      const Item of = evaluate(term.in[0]);
      if (const auto* node = std::get_if<ir::Node*>(&of))
        return (*node)->output(static_cast<size_t>(std::get<Dim>(evaluate(term.in[1])).value()));
      if (const auto* reals = std::get_if<std::vector<double>>(&of))
        return reals->at(place_of(std::get<Dim>(evaluate(term.in[1])), reals->size()));
      const Dims& list = std::get<Dims>(of);
      return list.at(place_of(std::get<Dim>(evaluate(term.in[1])), list.size()));
    }
    case Kind::cut: {
      const Dims list = std::get<Dims>(evaluate(term.in[0]));
      const auto at = [&](size_t k) {
        return list.begin() + static_cast<int64_t>(place_of(std::get<Dim>(evaluate(term.in[k])), list.size()));
      };
      return Dims(at(1), at(2));
    }
  }
  fail("a term of no kind");
}

Item RuleAt::infix(const std::string& sign, const Item& a, const Item& b) {
  if (sign == "==") return same_items(a, b);
  if (sign == "!=") return !same_items(a, b);
  const char mark = sign[0];
  if (is<Absent>(a) || is<Absent>(b)) return is<Absent>(a) ? b : a;
  if (is<Zero>(a) || is<Zero>(b)) {
    if (mark == '*' || mark == '/') return Zero{};
    if (is<Zero>(b)) return a;
    return mark == '+' ? b : Item(maker_.op("neg", {value(b)}));
  }
  if (value_in(a) || value_in(b)) {
    static constexpr std::string_view kOps[] = {"add", "sub", "mul", "div"};
    const DType dtype = (value_in(a) ? value_in(a) : value_in(b))->dtype();
    return maker_.op(kOps[std::string_view("+-*/").find(mark)], {tensor(a, dtype), tensor(b, dtype)});
  }
  if (is<double>(a) || is<double>(b)) return computed(mark, real_in(a).value(), real_in(b).value());
  if (is<Dim>(a) && is<Dim>(b)) return computed(mark, std::get<Dim>(a), std::get<Dim>(b));
  const Dims left = listed(a), right = listed(b);
  Dims out(std::max(left.size(), right.size()));
  if (std::min(left.size(), right.size()) == 0) return Dims();
  for (size_t k = 0; k < out.size(); ++k)
    out[k] = computed(mark, left[std::min(k, left.size() - 1)], right[std::min(k, right.size() - 1)]);
  return out;
}

Item RuleAt::call(const Term& term) {
  if (term.text == "d") return cotangent(term);
  Arguments in;
  for (const Term& each : term.in) in.push_back(evaluate(each));
  if (const SizeFunction function = size_function(term.text)) return function(in);
  const DType result = node_.output()->dtype();
  // full(number, like): a tensor of one number everywhere, in the shape of another or in a shape.
  if (term.text == "full") {
    const ir::Value* like = value_in(in.at(1));
    return maker_.full(like ? like->dtype() : result, real_in(in[0]).value(),
                       like ? like->shape() : std::get<Dims>(in[1]));
  }
  // before(axis): what the inputs before this one of many have along an axis together.
  if (term.text == "before") {
    Dim out = 0;
    for (size_t k = 0; k < place_; ++k) {
      const Shape& shape = node_.input(node_.op().inputs.size() - 1 + k)->shape();
      out = out + shape[place_of(std::get<Dim>(in.at(0)), shape.size())];
    }
    return out;
  }
  // found(size): for an attribute by which a node says it.
  if (term.text == "found") return maker_.found(std::get<Dim>(in.at(0)));
  // slope(function, x): of a row of formulas.inc at x.
  if (term.text == "slope") {
    const auto function = ops::function_from_name(std::get<std::string>(in.at(0)));
    ir::Value* x = value(in.at(1));
    return maker_.formula(ops::slopes_of(function.value()).front(), {{"x", x}}, x->dtype());
  }
  const ops::OpDef* op = ops::OpTable::global().find(term.text);
  if (!op) fail(text("there is no operator or function '", term.text, "'"));
  if (std::ranges::any_of(in, is<Zero>)) return Zero{};
  if (op->has(ops::Trait::commutative) && in.size() == 2 && std::ranges::any_of(in, is<Absent>))
    return is<Absent>(in[0]) ? in[1] : in[0];
  for (size_t k = 0; k < in.size(); ++k)
    if (is<Absent>(in[k]) && !op->inputs[std::min(k, op->inputs.size() - 1)].optional) return Absent{};
  DType dtype = result;
  for (size_t k = in.size(); k-- > 0;)
    if (const ir::Value* value = value_in(in[k]); value && value->dtype() != DType::boolean) dtype = value->dtype();
  std::vector<ir::Value*> inputs;
  for (const Item& each : in) inputs.push_back(tensor(each, dtype));
  ops::Attrs attrs;
  for (const auto& [name, value] : term.attrs) {
    const ops::AttrDef* def = op->find_attr(name);
    const auto attr = def ? attr_of(def->kind, evaluate(value)) : std::nullopt;
    if (!attr) fail(text(op->name, " takes no such attribute '", name, "'"));
    attrs.emplace(name, *attr);
  }
  return maker_.node(op->name, std::move(inputs), std::move(attrs));
}

}  // namespace hetnn::passes
