// Evaluates gradient rules: arithmetic of tensors makes nodes, that of sizes is done at once.
#include "hetnn/passes/gradient_values.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "hetnn/base/error.h"
#include "hetnn/ops/elementwise/readings.h"
#include "hetnn/ops/meaning.h"

namespace hetnn::passes {
namespace {

using Dims = std::vector<Dim>;

size_t place_of(const Dim& axis, size_t rank) {
  const int64_t at = axis.value();
  return static_cast<size_t>(at < 0 ? at + static_cast<int64_t>(rank) : at);
}

Dims axes_within(const Dims& axes, size_t rank) {
  Dims out;
  for (size_t k = 0; k < (axes.empty() ? rank : axes.size()); ++k)
    out.emplace_back(static_cast<int64_t>(axes.empty() ? k : place_of(axes[k], rank)));
  return out;
}

const ir::Value* value_in(const Item& item) {
  if (const auto* node = std::get_if<ir::Node*>(&item)) return (*node)->output();
  const auto* value = std::get_if<ir::Value*>(&item);
  return value ? *value : nullptr;
}

template <typename T>
bool is(const Item& item) {
  return std::holds_alternative<T>(item);
}

std::optional<double> real_in(const Item& item) {
  if (const auto* real = std::get_if<double>(&item)) return *real;
  if (const auto* dim = std::get_if<Dim>(&item); dim && dim->is_static()) return static_cast<double>(dim->value());
  return std::nullopt;
}

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

Dims listed(const Item& item) {
  if (const auto* list = std::get_if<Dims>(&item)) return *list;
  return {std::get<Dim>(item)};
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

using Arguments = std::vector<Item>;

// Functions of sizes: of what is known when a graph is made.
const std::map<std::string_view, Item (*)(const Arguments&)>& functions() {
  static const std::map<std::string_view, Item (*)(const Arguments&)> table = {
      {"shape", [](const Arguments& in) -> Item { return value_in(in[0])->shape(); }},
      {"rank", [](const Arguments& in) -> Item { return Dim(value_in(in[0])->rank()); }},
      {"count", [](const Arguments& in) -> Item { return elements(value_in(in[0])->shape()); }},
      {"dtype", [](const Arguments& in) -> Item { return value_in(in[0])->dtype(); }},
      {"is_empty",
       [](const Arguments& in) -> Item {
         const auto* reals = std::get_if<std::vector<double>>(&in[0]);
         return reals ? reals->empty() : std::get<Dims>(in[0]).empty();
       }},
      {"is_fixed", [](const Arguments& in) -> Item { return is_static(std::get<Dims>(in[0])); }},
      {"is_given", [](const Arguments& in) -> Item { return !is<Absent>(in[0]); }},
      {"not", [](const Arguments& in) -> Item { return !std::get<bool>(in[0]); }},
      {"root", [](const Arguments& in) -> Item { return std::sqrt(real_in(in[0]).value()); }},
      {"max", [](const Arguments& in) -> Item { return max(std::get<Dim>(in[0]), std::get<Dim>(in[1])); }},
      {"product", [](const Arguments& in) -> Item { return elements(std::get<Dims>(in[0])); }},
      // size(x, axis)
      {"size",
       [](const Arguments& in) -> Item {
         const Shape& shape = value_in(in[0])->shape();
         return shape[place_of(std::get<Dim>(in[1]), shape.size())];
       }},
      // given(list, other): the list, or the other where it is empty
      {"given", [](const Arguments& in) -> Item { return std::get<Dims>(in[0]).empty() ? in[1] : in[0]; }},
      // over(x, axes): the axes from the front; all of x's where none are named
      {"over",
       [](const Arguments& in) -> Item {
         return axes_within(std::get<Dims>(in[1]), static_cast<size_t>(value_in(in[0])->rank()));
       }},
      // others(x, axes): those of x that are not among them
      {"others",
       [](const Arguments& in) -> Item {
         const auto rank = static_cast<size_t>(value_in(in[0])->rank());
         const Dims axes = axes_within(std::get<Dims>(in[1]), rank);
         Dims out;
         for (size_t k = 0; k < rank; ++k)
           if (std::ranges::find(axes, Dim(static_cast<int64_t>(k))) == axes.end())
             out.emplace_back(static_cast<int64_t>(k));
         return out;
       }},
      // range(from, to)
      {"range",
       [](const Arguments& in) -> Item {
         Dims out;
         for (int64_t k = std::get<Dim>(in[0]).value(); k < std::get<Dim>(in[1]).value(); ++k) out.emplace_back(k);
         return out;
       }},
      // repeat(number, times)
      {"repeat",
       [](const Arguments& in) -> Item {
         return Dims(static_cast<size_t>(std::get<Dim>(in[1]).value()), std::get<Dim>(in[0]));
       }},
      {"join",
       [](const Arguments& in) -> Item {
         Dims out;
         for (const Item& each : in) std::ranges::copy(listed(each), std::back_inserter(out));
         return out;
       }},
      // with(list, places, number): the list with another number at these places
      {"with",
       [](const Arguments& in) -> Item {
         Dims out = std::get<Dims>(in[0]);
         for (const Dim& at : listed(in[1])) out[place_of(at, out.size())] = std::get<Dim>(in[2]);
         return out;
       }},
      // pick(list, places)
      {"pick",
       [](const Arguments& in) -> Item {
         const Dims& list = std::get<Dims>(in[0]);
         Dims out;
         for (const Dim& at : listed(in[1])) out.push_back(list[place_of(at, list.size())]);
         return out;
       }},
      // inverse(order): the permutation that undoes one
      {"inverse",
       [](const Arguments& in) -> Item {
         const Dims& order = std::get<Dims>(in[0]);
         Dims out(order.size());
         for (size_t k = 0; k < order.size(); ++k) out[place_of(order[k], order.size())] = Dim(static_cast<int64_t>(k));
         return out;
       }},
      // swapped(x): the order of axes that exchanges the last two
      {"swapped",
       [](const Arguments& in) -> Item {
         Dims out = axes_within({}, static_cast<size_t>(value_in(in[0])->rank()));
         std::swap(out[out.size() - 1], out[out.size() - 2]);
         return out;
       }},
      // borders(padding): of an image's padding by height and width, or by top, left, bottom and right, these four
      {"borders",
       [](const Arguments& in) -> Item {
         Dims out = std::get<Dims>(in[0]);
         if (out.size() == 1) out.push_back(out[0]);
         if (out.size() == 2) out.insert(out.end(), {out[0], out[1]});
         return out;
       }},
      // from_front(index, size): a bound that may count from the back or lie outside, as slices take it
      {"from_front",
       [](const Arguments& in) -> Item {
         const Dim &at = std::get<Dim>(in[0]), &size = std::get<Dim>(in[1]);
         if (!at.is_static()) return at;
         const Dim from = at.value() < 0 ? size + at : at;
         return max(Dim(0), min(from, size));
       }},
      // beside(x, axis, before, behind): what pads one axis
      {"beside",
       [](const Arguments& in) -> Item {
         const auto rank = static_cast<size_t>(value_in(in[0])->rank());
         Dims out(2 * rank, 0);
         const size_t axis = place_of(std::get<Dim>(in[1]), rank);
         out[axis] = std::get<Dim>(in[2]);
         out[axis + rank] = std::get<Dim>(in[3]);
         return out;
       }},
      // last_padded(padding): the last axis that has some; -1: none
      {"last_padded",
       [](const Arguments& in) -> Item {
         const Dims& padding = std::get<Dims>(in[0]);
         const size_t rank = padding.size() / 2;
         for (size_t k = rank; k-- > 0;)
           if (padding[k] != Dim(0) || padding[k + rank] != Dim(0)) return Dim(static_cast<int64_t>(k));
         return Dim(-1);
       }},
  };
  return table;
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
  if (const auto found = functions().find(term.text); found != functions().end()) return found->second(in);
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
