// Calls of every operator: the bytes choose one of its samples, then change types (ranks 0 to 9), attributes and
// values. What infers is evaluated by its meaning and, where the bytes say so, compiled for the general processor and
// run.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "hetnn/base/visit_dtype.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/ir/interpret.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"
#include "run.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

constexpr int64_t kMostElems = 1 << 14;
constexpr int kMostRank = 9;

// The input's bytes, one choice after another; zeros behind their end.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}

  unsigned byte() {
    if (bytes_.empty()) return 0;
    const auto out = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return out;
  }
  size_t below(size_t count) {
    if (count <= 1) return 0;
    const size_t number = byte();
    return (count <= 256 ? number : number << 8 | byte()) % count;
  }
  template <typename List>
  const auto& among(const List& list) {
    return std::data(list)[below(std::size(list))];
  }
  bool one_in(unsigned count) { return byte() % count == count - 1; }

 private:
  std::string_view bytes_;
};

constexpr int64_t kSizes[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 8, 17};
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kIntegers[] = {0,         1,         2,      3,    4,  7,   -1,      -2,           -3,
                                 -7,        5,         8,      9,    17, 100, 1 << 20, -(1LL << 31), 1LL << 31,
                                 1LL << 40, 1LL << 62, kLeast, kMost};
constexpr double kReals[] = {0, -0.0, 1, -1, 0.5, 2, 1e-5, 3, 1e30, -1e30, 1e-310, INFINITY, -INFINITY, NAN};
constexpr std::string_view kWords[] = {"none", "",     "tanh", "relu",    "reflect", "constant", "sum",
                                       "mean", "max",  "min",  "nearest", "linear",  "cubic",    "zeros",
                                       "half", "edge", "wrap", "forward", "bilinear"};

Shape random_shape(Choices& from) {
  Shape out(from.below(kMostRank + 1));
  for (Dim& size : out) size = from.among(kSizes);
  return out;
}

void change(Shape& shape, Choices& from) {
  const size_t at = from.below(shape.size());
  switch (from.below(4)) {
    case 0:
      if (!shape.empty()) shape[at] = from.among(kSizes);
      return;
    case 1:
      if (shape.size() < kMostRank) shape.insert(shape.begin() + static_cast<ptrdiff_t>(at), from.among(kSizes));
      return;
    case 2:
      if (!shape.empty()) shape.erase(shape.begin() + static_cast<ptrdiff_t>(at));
      return;
    default:
      shape = random_shape(from);
  }
}

// Values of any type with its edges among them; small ones for most, so that indices often fit.
Tensor random_values(DType dtype, const std::vector<int64_t>& shape, Choices& from) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(dtype, shape, &data);
  if (is_stored(dtype)) {
    for (int64_t k = 0; k < std::min<int64_t>(out.bytes(), 64); ++k) data[k] = static_cast<std::byte>(from.byte());
    return out;
  }
  const bool edges = from.one_in(3);
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    const int least = edges && !std::is_unsigned_v<T> ? -4 : 0;
    auto* values = reinterpret_cast<T*>(data);
    for (int64_t k = 0; k < out.elems(); ++k) {
      const bool read = k < 32;
      const double small = (read ? static_cast<int>(from.byte()) : static_cast<int>(k * 7)) % 9 + least;
      values[k] = static_cast<T>(static_cast<float>(dtype == DType::boolean ? std::fmod(small, 2) != 0 : small));
      if (!edges || !read || !from.one_in(4)) continue;
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        values[k] = from.one_in(2) ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
      } else if constexpr (std::is_floating_point_v<T>) {
        values[k] = static_cast<T>(from.among(kReals));
      }
    }
  });
  return out;
}

ops::Attr random_attr(ops::AttrKind kind, Choices& from) {
  const auto integer = [&] { return Dim(from.one_in(3) ? from.among(kIntegers) : from.among(kSizes)); };
  const size_t count = from.below(6);
  switch (kind) {
    case ops::AttrKind::boolean:
      return from.one_in(2);
    case ops::AttrKind::integer:
      return integer();
    case ops::AttrKind::real:
      return from.among(kReals);
    case ops::AttrKind::string:
      return std::string(from.among(kWords));
    case ops::AttrKind::dtype:
      return from.among(kAllDTypes);
    case ops::AttrKind::integers: {
      std::vector<Dim> out;
      for (size_t k = 0; k < count; ++k) out.push_back(integer());
      return out;
    }
    case ops::AttrKind::reals: {
      std::vector<double> out;
      for (size_t k = 0; k < count; ++k) out.push_back(from.among(kReals));
      return out;
    }
    case ops::AttrKind::tensor:
      break;
  }
  return random_values(from.among(kAllDTypes), {static_cast<int64_t>(count)}, from);
}

// A type of known sizes that are small enough, and how an input of it is given.
struct Given {
  std::optional<ops::Type> type;  // none: absent
  std::optional<Tensor> constant;
};

int64_t elems_of(const Shape& shape) {
  double out = 1;
  for (const Dim& size : shape) out *= static_cast<double>(size.value());
  return out <= static_cast<double>(kMostElems) ? static_cast<int64_t>(out) : -1;
}

// A sample's node. Symbols of its inputs have a value; those that the node finds stay.
struct Sampled {
  std::vector<Given> inputs;
  ops::Attrs attrs;
  std::vector<Symbol> found;
};

// The same where only found symbols are left.
Dim with_sizes(const Dim& dim, const Bindings& sizes) {
  std::set<std::string> symbols;
  dim.collect_symbols(symbols);
  for (const std::string& symbol : symbols) {
    if (!sizes.contains(symbol)) return dim;
  }
  return dim.evaluate(sizes);
}

Sampled sampled(const ops::OpDef& op, Choices& from) {
  const ir::Graph graph = ir::parse_sample(from.among(op.samples));
  std::set<std::string> symbols;
  for (const ir::Value* input : graph.inputs()) {
    for (const Dim& size : input->shape()) size.collect_symbols(symbols);
  }
  Bindings sizes;
  for (const std::string& symbol : symbols) sizes[symbol] = 1 + static_cast<int64_t>(from.below(9));
  const ir::Node* node = nullptr;
  for (const ir::Node* each : graph.nodes()) node = each;
  Sampled out;
  std::ranges::copy_if(graph.symbols, std::back_inserter(out.found),
                       [&](const Symbol& symbol) { return !symbols.contains(symbol.name); });
  for (size_t k = 0; k < node->inputs().size(); ++k) {
    Given& given = out.inputs.emplace_back();
    if (!node->input(k)) continue;
    given.type = node->input(k)->type();
    for (Dim& size : given.type->shape) size = size.evaluate(sizes);
    if (node->constant_input(k)) given.constant = *node->constant_input(k);
  }
  for (const auto& [name, value] : node->attrs()) {
    ops::Attr& attr = out.attrs[name] = value;
    if (auto* size = std::get_if<Dim>(&attr)) *size = with_sizes(*size, sizes);
    if (auto* list = std::get_if<std::vector<Dim>>(&attr)) {
      for (Dim& size : *list) size = with_sizes(size, sizes);
    }
  }
  return out;
}

void change(Sampled& call, const ops::OpDef& op, Choices& from) {
  const size_t kind = from.below(5);
  if (kind == 0 && !op.attrs.empty()) {
    const ops::AttrDef& attr = from.among(op.attrs);
    call.attrs[std::string(attr.name)] = random_attr(attr.kind, from);
    return;
  }
  if (call.inputs.empty()) return;
  Given& given = call.inputs[from.below(call.inputs.size())];
  if (!given.type) given.type = ops::Type{from.among(kAllDTypes), random_shape(from), std::nullopt};
  if (kind == 1) {
    change(given.type->shape, from);
  } else if (kind == 2) {
    const DType dtype = from.among(kAllDTypes);
    const bool all = from.one_in(2);
    for (Given& each : call.inputs) {
      if (each.type && (all || &each == &given)) each.type->dtype = dtype;
    }
  } else if (kind == 3) {
    given.type.reset();
  } else {
    call.inputs.pop_back();
    return;
  }
  for (Given& each : call.inputs) {  // values of another type
    if (each.constant && (!each.type || each.type->dtype != each.constant->dtype() ||
                          Shape(each.constant->shape().begin(), each.constant->shape().end()) != each.type->shape))
      each.constant.reset();
  }
}

bool is_small(const std::vector<ir::Value*>& values) {
  for (const ir::Value* value : values) {
    for (const Dim& size : value->shape()) {
      if (size.is_static() && (size.value() < 0 || size.value() > kMostElems)) return false;
    }
    Shape known;
    for (const Dim& size : value->shape()) known.push_back(size.is_static() ? size : Dim(1));
    if (elems_of(known) < 0) return false;
  }
  return true;
}

// The call as a graph, and values for the inputs that are no constants.
struct Made {
  ir::Graph graph{"call"};
  std::vector<Tensor> feeds;
};

std::optional<Made> make_call(const ops::OpDef& op, const Sampled& call, Choices& from) {
  Made out;
  out.graph.symbols = call.found;
  ir::Rewriter make(out.graph);
  std::vector<ir::Value*> inputs;
  for (const Given& given : call.inputs) {
    if (!given.type) {
      inputs.push_back(nullptr);
      continue;
    }
    if (elems_of(given.type->shape) < 0) return {};
    const std::vector<int64_t> shape = evaluate(given.type->shape, {});
    Tensor values = given.constant ? *given.constant : random_values(given.type->dtype, shape, from);
    if (given.constant || from.one_in(4)) {
      inputs.push_back(make.constant(std::move(values), {}, given.type->quant));
    } else {
      inputs.push_back(make.add_input("x", *given.type));
      out.feeds.push_back(std::move(values));
    }
  }
  const ir::Node* node = make.create(op.name, inputs, call.attrs);
  if (!is_small(node->outputs())) return {};
  for (ir::Value* output : node->outputs()) make.add_output(output);
  ir::verify(out.graph);
  return out;
}

void run_compiled(const ir::Graph& graph, std::span<const Tensor> feeds) {
  static const TargetSpec target = parse_target(R"({"devices": [{"name": "cpu", "kind": "cpu"}]})");
  auto image = std::make_shared<const program::Image>(Compilation::make(graph.clone(), target, {})->image());
  runtime::Executable executable({image, std::span(*image)}, 1);
  const Stop stop = fuzz::deadline();
  executable.run(feeds, {.stop = &stop});
}

void use(Choices from) {
  const std::vector<const ops::OpDef*>& all = ops::OpTable::global().all();
  const ops::OpDef& op = *from.among(all);
  if (op.samples.empty()) return;
  Sampled call = sampled(op, from);
  for (size_t changes = from.below(4); changes > 0; --changes) change(call, op, from);
  const bool compiled = from.one_in(4);
  const std::optional<Made> made = make_call(op, call, from);
  if (!made) return;
  try {
    HETNN_ASSERT(ir::interpret(made->graph, made->feeds).size() == made->graph.outputs().size());
    if (compiled) run_compiled(made->graph, made->feeds);
  } catch (const InternalError&) {
    std::fprintf(stderr, "%s\n", ir::print(made->graph).c_str());
    throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] { use(Choices(fuzz::text_of(data, size))); });
  return 0;
}
