// Sizes that depend on values: symbols to which calls give values when they run.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/ops/op_def.h"

namespace hetnn::ops {

/// An attribute that names a symbol to which the call gives a value, and one that names several: such an attribute is
/// known by its default, which is a symbol. An integer in its place is a size that the values must give.
inline AttrDef found_size(std::string_view name, std::string_view doc) {
  return {name, AttrKind::integer, Dim::symbol(name), doc};
}
inline AttrDef found_sizes(std::string_view name, std::string_view doc) {
  return {name, AttrKind::integers, std::vector<Dim>{Dim::symbol(name)}, doc};
}
bool defines(const AttrDef& def);

/// The name of a dim that is nothing but a symbol, else empty.
std::string symbol_name(const Dim& dim);

/// The symbols to which the call gives values when it runs.
std::vector<std::string> defined_symbols(const Call& call);

/// Adds the symbols that must have values before the call runs: those of its other attributes and of its inputs.
void collect_needed_symbols(const Call& call, std::set<std::string>& symbols);

/// Throws InvalidModel by `fail` unless the call names each of its symbols once, and nothing else.
void check_defined(const Call& call);

/// Results that are told sizes before memory is asked for what has them.
class FoundResults : public Results {
 public:
  virtual void define(std::string_view symbol, int64_t value) = 0;
};

/// For meanings: gives the symbols that the attribute `attr` names their values, before any output is asked for whose
/// size depends on them.
void define(const Evaluation& e, std::string_view attr, std::span<const int64_t> values);
inline void define(const Evaluation& e, std::string_view attr, int64_t value) { define(e, attr, {&value, 1}); }

/// InvalidModel naming the call unless the value is in the range of the symbol, to which the call gives it.
void check_range(const Call& call, const Symbol& symbol, int64_t value);

/// As evaluate, and adds what the call defines to `defined`.
std::vector<Tensor> evaluate(const Call& call, std::span<const std::optional<Tensor>> inputs, const Bindings& bindings,
                             Bindings& defined);
std::vector<Tensor> evaluate(const BoundCall& bound, std::span<const View> inputs, Bindings& defined, const Host& host);

}  // namespace hetnn::ops
