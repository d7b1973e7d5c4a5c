// Text to graph: a recursive-descent reader led by the operators' attribute declarations.
#include <charconv>
#include <limits>
#include <optional>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/base/quoted.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ir/text.h"

namespace hetnn::ir {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view source, Elsewhere elsewhere = {})
      : source_(source), elsewhere_(std::move(elsewhere)) {}

  Graph graph() {
    declared_.emplace();
    expect("graph");
    expect("@");
    Graph graph(peek('"') ? quoted() : std::string(word()));
    expect("{");
    expect("stage");
    expect("=");
    const std::string_view stage = word();
    auto parsed = stage_from_name(stage);
    if (!parsed) fail(text("there is no stage '", stage, "'"));
    while (take(",")) {
      if (take("symbols")) {
        symbols(graph);
      } else {
        expect("mutates");
        Mutation mutation{quoted(), {}, {}};
        expect("by");
        mutation.output = quoted();
        expect("from");
        const Type initial = type();
        mutation.initial = take("kept") ? elsewhere(elsewhere_.state, initial, mutation.input) : tensor_values(initial);
        graph.mutations.push_back(std::move(mutation));
      }
    }
    expect("}");
    Rewriter rewriter(graph);
    expect("(");
    while (!take(")")) {
      const std::string name = value_name();
      expect(":");
      if (!values_.emplace(name, rewriter.add_input(name, type())).second) fail(text("the name '", name, "' is taken"));
      take(",");
    }
    expect("->");
    struct Output {
      std::string value, name;
    };
    std::vector<Output> outputs;
    expect("(");
    while (!take(")")) {
      Output output{value_name(), {}};
      if (take("as")) output.name = quoted();
      outputs.push_back(std::move(output));
      take(",");
    }
    expect("{");
    while (!take("}")) node(rewriter);
    skip_space();
    if (at_ != source_.size()) fail("text goes on after the graph");
    for (const Output& output : outputs) rewriter.add_output(value(output.value), output.name);
    graph.stage = *parsed;
    return graph;
  }

  Graph sample() {
    Graph graph("sample");
    Rewriter rewriter(graph);
    const std::string op(word());
    expect("(");
    std::vector<Value*> inputs;
    while (!take(")")) {
      if (take("_")) {
        inputs.push_back(nullptr);
      } else {
        const Type read = type();
        if (peek('{') || peek('"')) {
          inputs.push_back(rewriter.constant(tensor_values(read), {}, read.quant));
        } else {
          inputs.push_back(rewriter.add_input(text("x", inputs.size()), read));
        }
      }
      take(",");
    }
    Attrs read = attrs(ops::OpTable::global().get(op));
    skip_space();
    if (at_ != source_.size()) fail("text goes on after the sample");
    std::set<std::string> names;
    for (const Value* input : inputs) {
      for (const Dim& dim : input ? input->shape() : Shape{}) dim.collect_symbols(names);
    }
    for (const std::string& name : names) graph.symbols.push_back({name, 1, 1 << 16, 4});
    const Node* made = rewriter.create(op, std::move(inputs), std::move(read));
    for (std::string& name : ops::defined_symbols(made->call()))
      graph.symbols.push_back({std::move(name), -(1 << 16), 1 << 16, 4});
    for (Value* output : made->outputs()) rewriter.add_output(output);
    return graph;
  }

 private:
  void symbols(Graph& graph) {
    expect("=");
    expect("[");
    while (!take("]")) {
      Symbol symbol;
      symbol.name = symbol_name();
      expect(":");
      symbol.min = integer();
      expect("..");
      symbol.max = integer();
      expect("=");
      symbol.hint = integer();
      declared_->insert(symbol.name);
      graph.symbols.push_back(std::move(symbol));
      take(",");
    }
  }

  std::string symbol_name() {
    const Dim read = Dim::parse(until(":"));
    std::set<std::string> names;
    read.collect_symbols(names);
    if (names.size() != 1 || read != Dim::symbol(*names.begin())) fail("expected a symbol");
    return *names.begin();
  }

  void node(Rewriter& rewriter) {
    std::vector<std::string> names;
    do {
      names.push_back(value_name());
      if (values_.contains(names.back())) fail(text("the name '", names.back(), "' is taken"));
    } while (take(","));
    expect("=");
    const std::string op(word());
    const OpDef* def = ops::OpTable::global().find(op);
    if (!def) {
      try {
        ops::OpTable::global().get(op);
      } catch (const InvalidModel& error) {
        fail(error.what());
      }
    }
    expect("(");
    std::vector<Value*> inputs;
    while (!take(")")) {
      if (take("_")) {
        inputs.push_back(nullptr);
      } else {
        inputs.push_back(value(value_name()));
      }
      take(",");
    }
    Attrs read = attrs(*def);
    expect(":");
    std::vector<Type> types;
    do types.push_back(type());
    while (take(","));
    std::string device;
    int subgraph = -1, launch = -1;
    if (take("on")) device = name();
    if (take("in")) subgraph = static_cast<int>(integer());
    if (take("launch")) launch = static_cast<int>(integer());
    Loc loc;
    if (take("loc")) {
      expect("(");
      loc.scope = quoted();
      if (take(",")) {
        loc.file = quoted();
        expect(":");
        loc.line = static_cast<int>(integer());
      }
      expect(")");
    }
    std::vector<std::string> aliases;
    if (take("also")) {
      expect("(");
      do aliases.push_back(quoted());
      while (take(","));
      expect(")");
    }
    Node* made = rewriter.create(op, std::move(inputs), std::move(read), names.front(), std::move(loc));
    made->aliases = std::move(aliases);
    if (made->outputs().size() != names.size())
      fail(text(op, " has ", made->outputs().size(), " outputs; ", names.size(), " names stand here"));
    if (types.size() != names.size()) fail(text(names.size(), " names and ", types.size(), " types stand here"));
    for (size_t k = 0; k < names.size(); ++k) {
      rewriter.rename(made->output(k), names[k]);
      if (made->output(k)->type() != types[k]) {
        fail(text("'", names[k], "' is written as ", to_string(types[k]), " but infers ",
                  to_string(made->output(k)->type())));
      }
      values_[names[k]] = made->output(k);
    }
    made->device = device;
    made->subgraph = subgraph;
    made->launch = launch;
  }

  Attrs attrs(const OpDef& op) {
    Attrs out;
    if (!take("{")) return out;
    do {
      const std::string name(word());
      expect("=");
      const ops::AttrDef* def = op.find_attr(name);
      if (!def) fail(text(op.name, " has no attribute '", name, "'"));
      out[name] = attr(def->kind);
    } while (take(","));
    expect("}");
    return out;
  }

  Attr attr(AttrKind kind) {
    switch (kind) {
      case AttrKind::boolean:
        if (take("true")) return true;
        expect("false");
        return false;
      case AttrKind::integer:
        return dim(",}");
      case AttrKind::real:
        return real<double>();
      case AttrKind::string:
        return peek('"') ? quoted() : std::string(word());
      case AttrKind::dtype:
        return dtype();
      case AttrKind::integers:
        return peek('[') ? shape() : Shape{dim(",}")};
      case AttrKind::reals: {
        std::vector<double> out;
        expect("[");
        while (!take("]")) {
          out.push_back(real<double>());
          take(",");
        }
        return out;
      }
      case AttrKind::tensor:
        return tensor_values(type());
    }
    fail("unknown kind of attribute");
  }

  template <typename T>
  Tensor numbers(const std::vector<int64_t>& shape) {
    std::vector<T> out;
    expect("{");
    while (!take("}")) {
      if constexpr (std::is_floating_point_v<T>) {
        out.push_back(real<T>());
      } else {
        const int64_t read = integer();
        if (std::is_same_v<T, bool> ? (read != 0 && read != 1) : (static_cast<int64_t>(static_cast<T>(read)) != read)) {
          fail(text(read, " is no value of ", dtype_name(DTypeOf<T>::value)));
        }
        out.push_back(static_cast<T>(read));
      }
      take(",");
    }
    int64_t count = 1;
    for (int64_t d : shape) count *= d;
    if (static_cast<int64_t>(out.size()) != count) fail(text("expected ", count, " values, got ", out.size()));
    std::byte* data = nullptr;
    Tensor tensor = Tensor::zeros(DTypeOf<T>::value, shape, &data);
    for (size_t k = 0; k < out.size(); ++k) {
      const T item = out[k];
      std::memcpy(data + k * sizeof(T), &item, sizeof(T));
    }
    return tensor;
  }

  // Values that the text has no bytes of.
  template <typename Where>
  Tensor elsewhere(const std::function<Tensor(DType, std::vector<int64_t>, Where)>& held, const Type& type,
                   const std::decay_t<Where>& where) {
    if (!held) fail("the values stand elsewhere, in the file that this text was kept in");
    if (!is_static(type.shape)) fail("a constant's shape must be integers");
    return held(type.dtype, values(type.shape), where);
  }

  // Of a tensor's type; how it is quantized stands beside it.
  Tensor tensor_values(const Type& type) {
    if (take("at")) return elsewhere(elsewhere_.constant, type, integer());
    if (!is_static(type.shape)) fail("a constant's shape must be integers");
    const std::vector<int64_t> shape = values(type.shape);
    if (peek('"')) {
      const std::string digits = quoted();
      std::byte* data = nullptr;
      Tensor tensor = Tensor::zeros(type.dtype, shape, &data);
      unbase64(digits, data, tensor.bytes());
      return tensor;
    }
    switch (type.dtype) {
      case DType::f32:
        return numbers<float>(shape);
      case DType::f64:
        return numbers<double>(shape);
      case DType::i8:
        return numbers<int8_t>(shape);
      case DType::u8:
        return numbers<uint8_t>(shape);
      case DType::i16:
        return numbers<int16_t>(shape);
      case DType::i32:
        return numbers<int32_t>(shape);
      case DType::i64:
        return numbers<int64_t>(shape);
      case DType::u16:
        return numbers<uint16_t>(shape);
      case DType::u32:
        return numbers<uint32_t>(shape);
      case DType::boolean:
        return numbers<bool>(shape);
      default:
        fail(text("values of ", dtype_name(type.dtype), " must be written as base64"));
    }
  }

  void unbase64(std::string_view digits, std::byte* out, int64_t bytes) {
    if (static_cast<int64_t>(digits.size()) != (bytes + 2) / 3 * 4) fail(text("expected base64 of ", bytes, " bytes"));
    uint32_t group = 0;
    for (size_t k = 0; k < digits.size(); ++k) {
      const char c = digits[k];
      uint32_t digit = 0;
      if (c >= 'A' && c <= 'Z') {
        digit = static_cast<uint32_t>(c - 'A');
      } else if (c >= 'a' && c <= 'z') {
        digit = static_cast<uint32_t>(c - 'a' + 26);
      } else if (c >= '0' && c <= '9') {
        digit = static_cast<uint32_t>(c - '0' + 52);
      } else if (c == '+' || c == '/') {
        digit = c == '+' ? 62 : 63;
      } else if (c != '=') {
        fail("a base64 digit is not one");
      }
      group = group << 6 | digit;
      if (k % 4 != 3) continue;
      for (int64_t j = 0; j < 3; ++j) {
        const int64_t at = static_cast<int64_t>(k / 4) * 3 + j;
        if (at < bytes) out[at] = static_cast<std::byte>(group >> (16 - 8 * j) & 255);
      }
      group = 0;
    }
  }

  Value* value(std::string_view name) {
    auto at = values_.find(name);
    if (at == values_.end()) fail(text("'%", name, "' is not written before this line"));
    return at->second;
  }

  Type type() {
    Type out{dtype(), {}};
    if (peek('{')) out.quant = quant();
    out.shape = shape();
    if (const auto fault = ops::shape_fault(out.shape)) fail(*fault);
    return out;
  }
  Quant quant() {
    Quant out;
    expect("{");
    do out.scales.push_back(real<double>());
    while (take(","));
    if (take(":")) {
      out.zero_points.clear();
      do out.zero_points.push_back(static_cast<int32_t>(integer()));
      while (take(","));
    }
    if (take("@")) out.axis = static_cast<int>(integer());
    expect("}");
    return out;
  }
  DType dtype() {
    const std::string_view name = word();
    auto found = dtype_from_name(name);
    if (!found) fail(text("there is no element type '", name, "'"));
    return *found;
  }
  Shape shape() {
    Shape out;
    expect("[");
    while (!take("]")) {
      out.push_back(dim(",]"));
      take(",");
    }
    return out;
  }

  // A dimension of declared symbols; a sample's symbols need no declaration.
  Dim dim(std::string_view stops) {
    Dim out = Dim::parse(until(stops));
    std::set<std::string> used;
    out.collect_symbols(used);
    for (const std::string& name : used) {
      if (declared_ && !declared_->contains(name)) fail(text("the symbol '", name, "' is not declared"));
    }
    return out;
  }

  template <typename T>
  T real() {
    skip_space();
    T out{};
    const char* begin = source_.data() + at_;
    auto [end, error] = std::from_chars(begin, source_.data() + source_.size(), out);
    if (error != std::errc() && error != std::errc::result_out_of_range) fail("expected a number");
    at_ += static_cast<size_t>(end - begin);
    return out;
  }
  int64_t integer() {
    skip_space();
    int64_t out = 0;
    const char* begin = source_.data() + at_;
    auto [end, error] = std::from_chars(begin, source_.data() + source_.size(), out);
    if (error != std::errc()) fail("expected an integer");
    at_ += static_cast<size_t>(end - begin);
    return out;
  }

  // The text up to one of `stops` outside parentheses.
  std::string_view until(std::string_view stops) {
    skip_space();
    const size_t begin = at_;
    for (int depth = 0; at_ < source_.size(); ++at_) {
      if (depth == 0 && stops.find(source_[at_]) != std::string_view::npos) break;
      depth += source_[at_] == '(' ? 1 : source_[at_] == ')' ? -1 : 0;
    }
    std::string_view out = source_.substr(begin, at_ - begin);
    while (!out.empty() && out.back() == ' ') out.remove_suffix(1);
    return out;
  }
  std::string_view word() { return run("_", "a word"); }
  std::string value_name() {
    expect("%");
    return name();
  }
  std::string name() { return peek('"') ? quoted() : std::string(run(kNameMarks, "a name")); }
  std::string_view run(std::string_view extra, std::string_view wanted) {
    skip_space();
    const size_t begin = at_;
    while (at_ < source_.size() && (std::isalnum(static_cast<unsigned char>(source_[at_])) ||
                                    extra.find(source_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    if (at_ == begin) fail(text("expected ", wanted));
    return source_.substr(begin, at_ - begin);
  }
  std::string quoted() {
    if (!peek('"')) fail("expected a quoted text");
    std::string_view rest = source_.substr(at_);
    std::optional<std::string> out = take_quoted(rest);
    if (!out) {
      at_ = source_.size();
      fail("a quoted text has no end");
    }
    at_ = source_.size() - rest.size();
    return *std::move(out);
  }

  bool peek(char c) {
    skip_space();
    return at_ < source_.size() && source_[at_] == c;
  }
  // Takes `token`; a token of letters must not go on as a longer word.
  bool take(std::string_view token) {
    skip_space();
    if (source_.substr(at_, token.size()) != token) return false;
    const size_t end = at_ + token.size();
    const bool letters = std::isalpha(static_cast<unsigned char>(token.back())) || token == "_";
    if (letters && end < source_.size() &&
        (std::isalnum(static_cast<unsigned char>(source_[end])) || source_[end] == '_'))
      return false;
    at_ = end;
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(text("expected '", token, "'"));
  }
  void skip_space() {
    while (at_ < source_.size()) {
      if (std::isspace(static_cast<unsigned char>(source_[at_]))) {
        ++at_;
      } else if (source_.substr(at_, 2) == "//") {
        at_ = std::min(source_.find('\n', at_), source_.size());
      } else {
        return;
      }
    }
  }
  [[noreturn]] void fail(const std::string& message) const {
    size_t line = 1, column = 1;
    for (size_t k = 0; k < at_ && k < source_.size(); ++k) {
      column = source_[k] == '\n' ? 1 : column + 1;
      line += source_[k] == '\n';
    }
    std::string_view rest = source_.substr(std::min(at_, source_.size()));
    rest = rest.substr(0, rest.find('\n'));
    size_t shown = std::min<size_t>(rest.size(), 24);
    while (shown < rest.size() && (static_cast<unsigned char>(rest[shown]) & 0xC0U) == 0x80)
      ++shown;  // whole characters
    throw InvalidModel(
        text("IR text, line ", line, ", column ", column, ": ", message, "; got '", rest.substr(0, shown), "'."));
  }

  std::string_view source_;
  Elsewhere elsewhere_;
  size_t at_ = 0;
  std::map<std::string, Value*, std::less<>> values_;
  std::optional<std::set<std::string>> declared_;  // symbols; none while a sample is read
};

}  // namespace

Graph parse(std::string_view source, const Elsewhere& elsewhere) { return Reader(source, elsewhere).graph(); }
Graph parse_sample(std::string_view source) { return Reader(source).sample(); }

}  // namespace hetnn::ir
