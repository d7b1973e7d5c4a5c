// Bodies: reading their text, inferring and running their calls.
#include "hetnn/ops/control/body.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <set>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

// A part that is read from the front.
struct Line {
  const Call& call;
  std::string_view rest;

  [[noreturn]] void fail(const std::string& message) const { ops::fail(call, "", text("its body: ", message, ".")); }
  std::string_view word() {
    while (!rest.empty() && rest.back() == ' ') rest.remove_suffix(1);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string_view out = rest.substr(0, rest.find(' '));
    rest.remove_prefix(out.size());
    return out;
  }
};

int64_t number_of(const Line& line, std::string_view word) {
  int64_t out = -1;
  if (word == "_") return out;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  if (error != std::errc() || end != word.data() + word.size() || out < 0) {
    line.fail(text("'", word, "' is no number of a value"));
  }
  return out;
}

// What stands before the first separator that lies in no brackets, taken off with it.
std::string_view next_part(std::string_view& list, char separator) {
  int depth = 0;
  size_t k = 0;
  for (; k < list.size() && (list[k] != separator || depth != 0); ++k) {
    const char c = list[k];
    depth += c == '[' || c == '(' || c == '{' ? 1 : c == ']' || c == ')' || c == '}' ? -1 : 0;
  }
  const std::string_view out = list.substr(0, k);
  list.remove_prefix(std::min(k + 1, list.size()));
  return out;
}

// The parts between separators that lie in no brackets.
std::vector<std::string_view> split(std::string_view list, char separator) {
  std::vector<std::string_view> out;
  while (!list.empty()) {
    if (const std::string_view part = next_part(list, separator); !part.empty()) out.push_back(part);
  }
  return out;
}

double real_of(const Line& line, std::string_view source) {
  const std::string digits(source);
  char* end = nullptr;
  const double out = std::strtod(digits.c_str(), &end);
  if (digits.empty() || *end != 0) line.fail(text("'", source, "' is no real"));
  return out;
}

// A size, in which those that the call's attribute `outer` holds stand in their places.
Dim size_of(const Line& line, std::string_view source) {
  constexpr std::string_view kOuter = "outer";
  const std::vector<Dim>& sizes = line.call.integers(kOuter);
  std::string out;
  for (size_t at = source.find(kOuter); at != source.npos; at = source.find(kOuter)) {
    out += source.substr(0, at);
    source.remove_prefix(at + kOuter.size());
    size_t index = 0;
    const auto [end, error] = std::from_chars(source.data(), source.data() + source.size(), index);
    if (error != std::errc() || index >= sizes.size())
      line.fail(text("'outer", source, "' is none of the ", sizes.size(), " sizes around it"));
    out += text("(", sizes[index], ")");
    source.remove_prefix(static_cast<size_t>(end - source.data()));
  }
  return Dim::parse(out.append(source));
}

// A string in which `%` and two hexadecimal digits stand for what separates the parts of a body, and for `%` itself.
std::string string_of(const Line& line, std::string_view source) {
  std::string out;
  for (size_t at = 0; at < source.size(); ++at) {
    if (source[at] != '%') {
      out += source[at];
      continue;
    }
    unsigned code = 0;
    const char *const begin = source.data() + at + 1, *const last = source.data() + std::min(at + 3, source.size());
    const auto [end, error] = std::from_chars(begin, last, code, 16);
    if (error != std::errc() || end != begin + 2) line.fail(text("'", source, "' has a % without two digits"));
    out += static_cast<char>(code);
    at += 2;
  }
  return out;
}

Attr attr_of(const Line& line, const AttrDef& def, std::string_view source) {
  const auto list = [&] {
    if (source.size() < 2 || source.front() != '[' || source.back() != ']')
      line.fail(text("'", source, "' is no list"));
    return split(source.substr(1, source.size() - 2), ',');
  };
  switch (def.kind) {
    case AttrKind::boolean:
      if (source != "true" && source != "false") line.fail(text("'", source, "' is neither true nor false"));
      return source == "true";
    case AttrKind::integer:
      return size_of(line, source);
    case AttrKind::real:
      return real_of(line, source);
    case AttrKind::string:
      return string_of(line, source);
    case AttrKind::dtype:
      if (const auto dtype = dtype_from_name(source)) return *dtype;
      line.fail(text("'", source, "' is no element type"));
    case AttrKind::integers: {
      std::vector<Dim> out;
      for (const std::string_view each : list()) out.push_back(size_of(line, each));
      return out;
    }
    case AttrKind::reals: {
      std::vector<double> out;
      for (const std::string_view each : list()) out.push_back(real_of(line, each));
      return out;
    }
    case AttrKind::tensor:
      break;
  }
  line.fail(text("the attribute '", def.name, "' holds a tensor, which must be an input"));
}

Body::Node step_of(Line line, const OpDef& op) {
  const size_t open = line.rest.find('{');
  if (open == std::string_view::npos || line.rest.back() != '}') line.fail("a call must end with its attributes in {}");
  const std::string_view attrs = line.rest.substr(open + 1, line.rest.size() - open - 2);
  line.rest = line.rest.substr(0, open);
  Body::Node out{&op, {}, {}};
  for (std::string_view word = line.word(); !word.empty(); word = line.word()) {
    out.inputs.push_back(number_of(line, word));
  }
  for (const std::string_view each : split(attrs, ';')) {
    const size_t equals = std::min(each.find('='), each.size());
    const AttrDef* def = op.find_attr(each.substr(0, equals));
    if (!def) line.fail(text(op.name, " has no attribute '", each.substr(0, equals), "'"));
    out.attrs.emplace(def->name, attr_of(line, *def, each.substr(std::min(equals + 1, each.size()))));
  }
  return out;
}

// The call of a step on values of these types.
Call call_of(const Call& call, const Body::Node& step, const std::deque<Type>& types) {
  Call out{step.op, {}, {}, step.attrs, call.name, call.loc};
  for (const int64_t k : step.inputs) {
    if (k >= static_cast<int64_t>(types.size())) fail(call, "", text("its body: there is no value ", k, " yet."));
    out.inputs.push_back(k < 0 ? Operand{} : Operand{&types[static_cast<size_t>(k)], nullptr});
  }
  out.inputs.resize(std::max(out.inputs.size(), step.op->inputs.size()));
  complete(out);
  return out;
}

void check_taken(const Call& call, int64_t input, const std::vector<std::string>& sizes, std::span<const Type> inputs) {
  if (input < 0 || input >= static_cast<int64_t>(inputs.size()) ||
      inputs[static_cast<size_t>(input)].shape.size() != sizes.size()) {
    fail(call, "",
         text("its body: it takes value ", input, " with ", sizes.size(), " sizes, which is none of its ",
              inputs.size(), " inputs, or of another rank."));
  }
}

// Where what the body gives stands among its values.
std::vector<size_t> given(const Call& call, const Body& body, size_t values) {
  std::vector<size_t> out;
  for (const int64_t k : body.outputs) {
    if (k < 0 || k >= static_cast<int64_t>(values)) fail(call, "", text("its body gives no value ", k, "."));
    out.push_back(static_cast<size_t>(k));
  }
  return out;
}

}  // namespace

Tensor copy_of(const View& view) {
  std::byte* to = nullptr;
  Tensor out = Tensor::zeros(view.dtype, {view.shape.begin(), view.shape.end()}, &to);
  std::copy_n(view.data, out.bytes(), to);
  return out;
}

namespace {

// An attribute as attr_of reads it.
struct Writer {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const Dim& value) const { return value.to_string(); }
  std::string operator()(double value) const {
    char buffer[32];
    return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
  }
  std::string operator()(const std::string& value) const {
    constexpr std::string_view kSeparators = "%;|(){}[]", kDigits = "0123456789abcdef";
    std::string out;
    for (const char c : value) {
      if (kSeparators.find(c) == kSeparators.npos) {
        out += c;
      } else {
        out += {'%', kDigits[static_cast<size_t>(c) >> 4], kDigits[static_cast<size_t>(c) & 15]};
      }
    }
    return out;
  }
  std::string operator()(DType value) const { return std::string(dtype_name(value)); }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    std::string out = "[";
    for (const T& value : values) out += (out.size() > 1 ? "," : "") + (*this)(value);
    return out + "]";
  }
  std::string operator()(const Tensor&) const {
    HETNN_ASSERT(false, "a call of a body holds no tensor");
    return {};
  }
};

Body read(const Call& call, std::string_view attr, bool calls) {
  Body out;
  for (std::string_view rest = call.string(attr); !rest.empty();) {
    Line line{call, next_part(rest, '|')};
    if (line.rest.empty()) continue;
    const std::string_view name = line.word();
    if (name == "take") {
      if (!out.steps.empty()) line.fail("what it takes must stand before its calls");
      std::vector<std::string>& sizes = out.taken[number_of(line, line.word())];
      for (std::string_view word = line.word(); !word.empty(); word = line.word()) sizes.emplace_back(word);
      continue;
    }
    if (!calls) break;
    if (name != "give") {
      const OpDef* op = OpTable::global().find(name);
      if (!op) line.fail(text("there is no operator '", name, "'"));
      out.steps.push_back(step_of(line, *op));
      continue;
    }
    for (std::string_view word = line.word(); !word.empty(); word = line.word()) {
      out.outputs.push_back(number_of(line, word));
    }
  }
  return out;
}

}  // namespace

Body read_body(const Call& call, std::string_view attr) { return read(call, attr, true); }

std::string write_body(const Body& body) {
  std::string out;
  for (const auto& [input, sizes] : body.taken) {
    out += text("take ", input);
    for (const std::string& size : sizes) out += text(" ", size);
    out += " | ";
  }
  for (const Body::Node& step : body.steps) {
    out += step.op->name;
    for (const int64_t k : step.inputs) out += k < 0 ? " _" : text(" ", k);
    out += " {";
    for (const auto& [name, value] : step.attrs)
      out += text(out.back() == '{' ? "" : ";", name, "=", std::visit(Writer{}, value));
    out += "} | ";
  }
  out += "give";
  for (const int64_t k : body.outputs) out += text(" ", k);
  return out;
}

Body read_taken(const Call& call, std::string_view attr) { return read(call, attr, false); }

std::vector<Type> taken_types(const Call& call, const Body& body, std::vector<Type> inputs) {
  for (const auto& [input, sizes] : body.taken) {
    check_taken(call, input, sizes, inputs);
    Shape& shape = inputs[static_cast<size_t>(input)].shape;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] != "_") shape[axis] = Dim::symbol(sizes[axis]);
    }
  }
  return inputs;
}

std::vector<Type> infer_body(const Call& call, const Body& body, std::span<const Type> inputs) {
  std::deque<Type> types(inputs.begin(), inputs.end());
  for (const Body::Node& step : body.steps) {
    std::vector<Type> made = infer_types(call_of(call, step, types));
    types.insert(types.end(), made.begin(), made.end());
  }
  std::vector<Type> out;
  for (const size_t k : given(call, body, types.size())) out.push_back(types[k]);
  return out;
}

namespace {

// What depends on shapes alone is made anew only where they change.
class Meanings final : public RunningBody {
 public:
  Meanings(const Call& call, const Body& body, const Host& host)
      : call_(call), body_(body), host_(host), ready_(body.steps.size()) {}

  std::vector<Tensor> run(std::span<const View> inputs) override {
    std::deque<Tensor> made;  // behind the inputs
    std::vector<View> values(inputs.begin(), inputs.end());
    std::deque<Type> types;
    for (const View& each : inputs) types.push_back(type_of(each));
    Bindings defined;
    for (const auto& [input, sizes] : body_.taken) {
      const View& taken = inputs[static_cast<size_t>(input)];
      for (size_t axis = 0; axis < taken.shape.size(); ++axis) defined[sizes[axis]] = taken.shape[axis];
    }
    for (size_t k = 0; k < body_.steps.size(); ++k) {
      const BoundCall& own = ready(k, types, defined);
      std::vector<View> operands(own.call().inputs.size());
      for (size_t i = 0; i < body_.steps[k].inputs.size(); ++i) {
        const int64_t value = body_.steps[k].inputs[i];
        if (value >= 0) operands[i] = values[static_cast<size_t>(value)];
      }
      for (Tensor& each : evaluate(own, operands, defined, host_)) {
        values.emplace_back(made.emplace_back(std::move(each)));
        types.push_back(type_of(values.back()));
      }
    }
    std::vector<Tensor> out;
    for (const size_t k : given(call_, body_, values.size()))
      out.push_back(k < inputs.size() ? copy_of(values[k]) : made[k - inputs.size()]);
    return out;
  }

 private:
  // A step as it was last run.
  struct Ready {
    std::vector<std::optional<Type>> types;  // of its inputs
    Bindings sizes;                          // that its attributes name
    std::unique_ptr<BoundCall> bound;
  };

  static Type type_of(const View& view) { return {view.dtype, {view.shape.begin(), view.shape.end()}}; }

  const BoundCall& ready(size_t step, const std::deque<Type>& types, const Bindings& sizes) {
    const Body::Node& wanted = body_.steps[step];
    Ready& out = ready_[step];
    std::vector<std::optional<Type>> now;
    for (const int64_t k : wanted.inputs) {
      if (k >= static_cast<int64_t>(types.size())) fail(call_, "", text("its body: there is no value ", k, " yet."));
      now.push_back(k < 0 ? std::nullopt : std::optional(types[static_cast<size_t>(k)]));
    }
    const auto same = [&](const auto& size) {
      const auto at = sizes.find(size.first);
      return at != sizes.end() && at->second == size.second;
    };
    if (out.bound && out.types == now && std::ranges::all_of(out.sizes, same)) return *out.bound;
    const Call call = call_of(call_, wanted, types);
    std::set<std::string> needed;
    collect_needed_symbols(call, needed);
    out = {std::move(now), {}, std::make_unique<BoundCall>(call, sizes)};
    for (const std::string& symbol : needed) out.sizes[symbol] = sizes.at(symbol);
    return *out.bound;
  }

  const Call& call_;
  const Body& body_;
  const Host host_;
  std::vector<Ready> ready_;
};

}  // namespace

std::unique_ptr<RunningBody> run_by_meanings(const Call& call, const Body& body, const Host& host) {
  return std::make_unique<Meanings>(call, body, host);
}

}  // namespace hetnn::ops
