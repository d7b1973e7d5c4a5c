// What operators have in common whose attributes are values of an input.
#include "hetnn/ops/late.h"

#include <algorithm>

#include "hetnn/base/stored.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
AttrDef sizes_attr() { return found_sizes("sizes", "the shape of y"); }

std::vector<Type> infer_late(const Call& call) {
  check_integers(call, 1);
  return {{call.input(0).dtype, call.integers("sizes")}};
}

void check_integers(const Call& call, size_t first, size_t last) {
  for (size_t k = first; k < std::min(last, call.inputs.size()); ++k) {
    if (call.has(k) && (!is_integer(call.input(k).dtype) || call.input(k).quant || call.input(k).rank() > 1)) {
      fail(call, text(call.op->name, "_c1"),
           text("'", call.op->inputs[k].name, "' must hold integers, in rank 0 or 1; got ", to_string(call.input(k)),
                ". Cast or reshape it."));
    }
  }
}

std::vector<int64_t> axes_of(const Evaluation& e, size_t input, int64_t rank) {
  std::vector<int64_t> out;
  if (!e.has(input)) return out;
  for (const int64_t given : values_as<int64_t>(e.input(input))) {
    const int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank || std::find(out.begin(), out.end(), axis) != out.end()) {
      fail(e.call, "", text("axis ", given, " of rank ", rank, " is none, or is named twice. Check the axes."));
    }
    out.push_back(axis);
  }
  return out;
}

void check_parts(const Evaluation& e, std::string_view contract, const std::vector<int64_t>& parts, int64_t size) {
  int64_t left = size;
  for (const int64_t part : parts) {
    left = part < 0 || part > left ? -1 : left - part;
    if (left < 0) break;
  }
  if (left != 0) {
    fail(e.call, contract,
         text("the parts' sizes must add up to ", size, "; got ", to_string(Shape(parts.begin(), parts.end())), "."));
  }
}

Result late_output(const Evaluation& e, std::vector<int64_t> shape) {
  define(e, "sizes", shape);
  return e.output(0, std::move(shape));
}

void evaluate_as(const Evaluation& e, std::string_view op, Attrs attrs) {
  Call call{&OpTable::global().get(op), {e.call.inputs[0]}, {}, std::move(attrs), e.call.name, e.call.loc};
  call.inputs.resize(call.op->inputs.size());
  complete(call);
  const std::vector<Type> types = infer_types(call);
  for (const Type& type : types) call.outputs.push_back(&type);
  define(e, "sizes", values(types[0].shape));
  std::vector<View> views(call.inputs.size());
  views[0] = e.input(0);
  evaluate(call, views, e.results);
}

std::vector<Type> infer_late_form(const Call& call, const OpDef& fixed) {
  const Type& x = call.input(0);
  for (size_t k = 1; k < call.inputs.size(); ++k) {
    const AttrDef* attr = fixed.find_attr(call.op->inputs[k].name);
    const bool real = attr && attr->kind == AttrKind::real;
    if (!real) check_integers(call, k, k + 1);
    if (!real || !call.has(k) || (call.input(k).dtype == x.dtype && elements(call.input(k).shape) == Dim(1))) continue;
    fail(call, text(call.op->name, "_c2"),
         text(attr->name, " must be one ", dtype_name(x.dtype), "; got ", to_string(call.input(k)), "."));
  }
  return {{x.dtype, call.integers("sizes")}};
}

void evaluate_late_form(const Evaluation& e, const OpDef& fixed, Resolve* resolve) {
  Attrs attrs;
  for (const AttrDef& attr : fixed.attrs) {
    const std::string name(attr.name);
    const int input = e.call.op->input_index(name);
    if (input >= 0 && !e.has(static_cast<size_t>(input))) continue;
    const View given = input < 0 ? View() : e.input(static_cast<size_t>(input));
    if (input < 0) {
      const auto own = e.call.attrs.find(name);
      const bool none = own == e.call.attrs.end() || own->second == Attr(std::vector<Dim>());  // then the default
      if (!none) attrs.insert(*own);
    } else if (attr.kind == AttrKind::real) {
      attrs.emplace(name, is_stored(given.dtype) ? stored_value(given.dtype, static_cast<uint8_t>(given.data[0]))
                                                 : values_as<double>(given)[0]);
    } else {
      const std::vector<int64_t> integers = values_as<int64_t>(given);
      attrs.emplace(name, std::vector<Dim>(integers.begin(), integers.end()));
    }
  }
  if (resolve) resolve(e, attrs);
  evaluate_as(e, fixed.name, std::move(attrs));
}

OpDef late_form_of(const OpDef& fixed, OpDef late) {
  for (const AttrDef& attr : fixed.attrs) {
    if (attr.default_value && late.input_index(attr.name) < 0) late.attrs.push_back(attr);
  }
  late.attrs.push_back(sizes_attr());
  late.traits = fixed.traits & (Trait::movement | Trait::wide);
  late.tolerance = fixed.tolerance;
  return late;
}

}  // namespace hetnn::ops
