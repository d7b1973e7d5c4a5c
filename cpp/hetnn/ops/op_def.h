// What hetnn knows of an operator, in one record: an operator is one file under ops/ that fills this in.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hetnn/base/tensor.h"
#include "hetnn/ops/call.h"
#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// Facts that passes, devices and tests rely on.
enum class Trait : uint32_t {
  elementwise = 1,   // output element i depends on element i of the (broadcast) inputs alone
  movement = 2,      // moves or reinterprets values without arithmetic
  commutative = 4,   // the first two inputs may be swapped
  compute = 8,       // does arithmetic that an accelerator exists for (the partitioner's `compute`)
  view = 16,         // movement that keeps the row-major order of elements: free in a plain layout
  channelwise = 32,  // elementwise along everything but axis 1, where its constant inputs vary
  source = 64,       // no inputs
  constant = 128,    // a compile-time tensor in its attribute `value`
  conversion = 256,  // from one element type to another
  integral = 512,    // on quantized values, computes with the integers themselves instead of the reals
  wide = 1024,       // computes in f32, f64, i64, u64 and bool; others are converted on the way in and out
  control = 2048,    // hands values on, of any type, and runs other calls on them
  special = 4096,    // a function of reals that a series or a table computes
};

/// Their names, for documents and tests.
inline constexpr std::pair<Trait, std::string_view> kTraits[] = {
    {Trait::elementwise, "elementwise"}, {Trait::movement, "movement"}, {Trait::commutative, "commutative"},
    {Trait::compute, "compute"},         {Trait::view, "view"},         {Trait::channelwise, "channelwise"},
    {Trait::source, "source"},           {Trait::constant, "constant"}, {Trait::conversion, "conversion"},
    {Trait::integral, "integral"},       {Trait::wide, "wide"},         {Trait::control, "control"},
    {Trait::special, "special"}};

/// The kind of instruction by which accelerators compute an operator.
enum class Primitive : uint8_t {
  none,
  convolution,  // of a window with constant weights; a linear layer is one of a single pixel
  product,      // of two matrices
  add,
  subtract,
  multiply,
  maximum,
  minimum,
  relu,
  clamp,
  table,  // any function of one byte
  largest_pool,
  mean_pool,
  concat,
  slice,
  rearrange,  // elements in another order, or none
  softmax,    // of rows
  normalize,  // rows to mean 0 and variance 1, times weights, plus biases
};

struct InputDef {
  std::string_view name;
  std::string_view doc;
  bool optional = false;
  bool variadic = false;  // the last input only: one or more values
};

struct AttrDef {
  std::string_view name;
  AttrKind kind;
  std::optional<Attr> default_value;  // none: required
  std::string_view doc;
};

/// A one-to-one name in torch: the overload, and for each of its arguments in order the input or attribute of the
/// operator that it fills, separated by spaces. `-` skips an argument; `name=value` adds a fixed attribute.
/// Example: {"aten.conv2d.default", "x weight bias stride padding dilation groups"}.
struct TorchName {
  std::string_view overload;
  std::string_view arguments;
};

/// What ONNX calls it. With arguments it is one to one from operator set `since` on: each word is the input that the
/// call's next input fills (`-`: none), or, behind them, an attribute, `ours:theirs` where the names differ;
/// `name=value` adds a fixed attribute. Example: {"LeakyRelu", 1, "x negative_slope:alpha"}. A name alone has a rule in
/// the importer.
struct OnnxName {
  std::string_view op_type;
  int since = 0;
  std::string_view arguments = {};

  OnnxName(const char* type, int from = 0, std::string_view args = {})  // NOLINT(google-explicit-constructor)
      : op_type(type), since(from), arguments(args) {}
};

/// Why a node does not fit a device: the constraint's label, what was found, what is wanted, one sentence.
struct Reason {
  std::string label;
  std::string found;
  std::string wanted;
  std::string text;
};

/// A structural condition of a device class ("npu", "cpu") on nodes of an operator; limits that are figures stand in
/// the device's spec instead and are compared with `metrics`.
struct Constraint {
  std::string_view device_class;
  std::string_view label;
  std::string_view text;
  /// nullopt when the node satisfies it, else {found, wanted}.
  std::optional<std::pair<std::string, std::string>> (*violation)(const Call&);
};

/// A named size that a device may limit: `{"kernel_h", 3}` against a limit `kernel_h_max` of the spec.
struct Metric {
  std::string_view name;
  Dim value;
};

/// Arithmetic work; bytes follow from the types.
struct Work {
  Dim macs = 0;   // multiply-accumulates
  Dim flops = 0;  // other floating-point operations
};

struct OpDef {
  std::string_view name = {};
  std::string_view doc = {};  // one sentence, then the formula
  std::vector<InputDef> inputs = {};
  std::vector<AttrDef> attrs = {};
  std::vector<std::string_view> outputs = {"y"};
  uint32_t traits = 0;
  Primitive primitive = Primitive::none;
  std::vector<TorchName> torch = {};
  std::vector<OnnxName> onnx = {};

  /// Types of the outputs from a node whose inputs and attributes are set. Throws InvalidModel by `fail`.
  std::vector<Type> (*infer)(const Call&) = nullptr;
  /// Throws InvalidModel by `fail` for values that neither the meaning nor a variant takes, such as an index out of
  /// range; none: every value is taken. Of an input without data the values are not known yet: it says nothing of them.
  void (*check)(const Call&, std::span<const View> inputs) = nullptr;
  /// Computes the outputs, of values that passed the check.
  void (*meaning)(const Evaluation&) = nullptr;
  /// Strides by which the result lies in the memory of the first input, which has such strides, in elements; nullopt
  /// where it lies by none. None: it is computed.
  std::optional<Shape> (*seen)(const Call&, const Shape& strides) = nullptr;
  /// Arithmetic work; none: one flop for every element of an elementwise operator, else nothing.
  Work (*work)(const Call&) = nullptr;
  std::vector<Metric> (*metrics)(const Call&) = nullptr;
  /// Whether it computes entry n of a batch, index n along axis 0, of the inputs that are named and of its outputs,
  /// from entry n alone (ops/batch.h); none: elementwise operators do, others not.
  bool (*keeps_batch)(const Call&, std::span<const bool> batched) = nullptr;
  std::vector<Constraint> constraints = {};

  /// Largest max|difference| / max|reference| of any device's f32 result.
  double tolerance = 1e-5;
  /// One-line nodes for tests, fuzz seeds and benches: `conv2d(f32[1,3,8,8], f32[4,3,3,3], _) {stride = [2,2]}`.
  std::vector<std::string_view> samples = {};

  bool has(Trait trait) const { return (traits & static_cast<uint32_t>(trait)) != 0; }
  /// Its attribute of that name, or one of those that any node may have; null when there is none.
  const AttrDef* find_attr(std::string_view attr) const;
  /// Position of an input by name, or -1.
  int input_index(std::string_view input) const;
};

constexpr uint32_t operator|(Trait a, Trait b) { return static_cast<uint32_t>(a) | static_cast<uint32_t>(b); }
constexpr uint32_t operator|(uint32_t a, Trait b) { return a | static_cast<uint32_t>(b); }

/// Names of the two operators that graphs and programs are made with, whatever a model holds.
inline constexpr std::string_view kConstant = "constant", kIdentity = "identity";

/// The operators, from all_ops.inc.
class OpTable {
 public:
  /// The table of this process.
  static const OpTable& global();
  const OpDef* find(std::string_view name) const;
  /// As find, but throws InvalidModel with the closest name.
  const OpDef& get(std::string_view name) const;
  /// All operators by name.
  std::vector<const OpDef*> all() const;

 private:
  void add(const OpDef& def);

  std::map<std::string_view, OpDef, std::less<>> by_name_;
};

}  // namespace hetnn::ops
