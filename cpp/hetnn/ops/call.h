// A call of an operator: all that inference, work, constraints, kernels and the meaning may know. A graph's node has a
// call, a program's command is one.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/tensor.h"
#include "hetnn/ops/type.h"

namespace hetnn::ops {

struct OpDef;

/// Where a call comes from in the user's model. Empty parts are unknown.
struct Loc {
  std::string scope;  // module path: layer1.0.conv1
  std::string file;
  int line = 0;
  bool operator==(const Loc&) const = default;
};
/// `resnet.py:88`, or the scope, or nothing.
std::string to_string(const Loc& loc);

/// What is known of an input: its type (null: an optional input that is absent) and, of a constant, its value.
struct Operand {
  const Type* type = nullptr;
  const Tensor* constant = nullptr;
};

/// Refers to types and constants of its owner, which keeps them alive.
struct Call {
  const OpDef* op = nullptr;
  std::vector<Operand> inputs;
  std::vector<const Type*> outputs;  // empty until they are inferred
  Attrs attrs;
  std::string name;
  Loc loc;

  bool has(size_t index) const { return index < inputs.size() && inputs[index].type != nullptr; }
  /// Type of a present input. InternalError when it is absent.
  const Type& input(size_t index) const;
  const Type& output(size_t index = 0) const { return *outputs[index]; }
  /// The value of input `index` where it is a constant, else null.
  const Tensor* constant(size_t index) const { return index < inputs.size() ? inputs[index].constant : nullptr; }

  /// Attributes by kind. InternalError when the attribute is missing or of another kind.
  bool flag(std::string_view attr) const;
  Dim integer(std::string_view attr) const;
  double real(std::string_view attr) const;
  const std::string& string(std::string_view attr) const;
  DType dtype(std::string_view attr) const;
  const std::vector<Dim>& integers(std::string_view attr) const;
  const std::vector<double>& reals(std::string_view attr) const;
  const Tensor& tensor(std::string_view attr) const;

 private:
  const Attr& attr(std::string_view attr, AttrKind kind) const;
};

/// Throws InvalidModel about a call: `conv2d 'layer1.0.conv1': <message>\n  at resnet.py:88`. The message names both
/// values, one cause and what to do; `label` is the broken constraint's.
[[noreturn]] void fail(const Call& call, std::string_view label, const std::string& message);

/// How messages name a call: `conv2d 'layer1.0.conv1'`.
std::string describe(const Call& call);

/// Adds the symbols that the call's types and attributes depend on.
void collect_symbols(const Call& call, std::set<std::string>& symbols);

/// Checks the number of inputs, their presence, and the attributes' names and kinds against the operator's record, and
/// fills in defaults. InvalidModel as by `fail`.
void complete(Call& call);

/// Types of the outputs: the operator's own inference, then the quantization that the call states or, where it only
/// moves values, that of its input. Throws InvalidModel when a quantized result is stated nowhere.
std::vector<Type> infer_types(const Call& call);

}  // namespace hetnn::ops
