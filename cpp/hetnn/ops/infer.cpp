// Shape inference shared by operator files.
#include "hetnn/ops/infer.h"

#include <algorithm>

namespace hetnn::ops {

std::vector<Type> same_as_input(const Call& call) { return {call.input(0)}; }

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t k = 0; k < shorter.size(); ++k) {
    Dim& dim = out[offset + k];
    if (dim == shorter[k] || shorter[k] == Dim(1)) continue;
    if (dim != Dim(1)) return std::nullopt;
    dim = shorter[k];
  }
  return out;
}

std::vector<Type> broadcast_inputs(const Call& call) {
  Type type = call.input(0);
  for (size_t k = 1; k < call.inputs.size(); ++k) {
    const Type& other = call.input(k);
    if (!agree(other, type)) {
      fail(call, text(call.op->name, "_c1"),
           text("its inputs must have one element type; got ", dtype_name(type.dtype), " and ", dtype_name(other.dtype),
                ". Cast one of them."));
    }
    auto shape = broadcast(type.shape, other.shape);
    if (!shape) {
      fail(call, text(call.op->name, "_c2"),
           text("its inputs must broadcast; got ", to_string(type.shape), " and ", to_string(other.shape),
                ". Check the shapes that meet here."));
    }
    type.shape = std::move(*shape);
  }
  return {type};
}

std::vector<Type> compare_inputs(const Call& call) { return {{DType::boolean, broadcast_inputs(call).front().shape}}; }

Dim window_size(const Dim& size, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_begin, int64_t pad_end,
                bool ceil_mode) {
  const Dim span = size + pad_begin + pad_end - dilation * (kernel - 1) - 1;
  if (!ceil_mode) return floor_div(span, stride) + 1;
  Dim out = ceil_div(span, stride) + 1;
  // Windows 0 … out-1 must start before size + pad_begin, so out <= ceil((size + pad_begin) / stride). With no padding
  // at the end and a kernel no narrower than the stride the formula above already keeps that.
  if (pad_end == 0 && dilation * (kernel - 1) + 1 >= stride) return out;
  return min(out, ceil_div(size + pad_begin, stride));
}

std::vector<int64_t> per_axis(const Call& call, std::string_view name, size_t count) {
  const std::vector<Dim>& given = call.integers(name);
  if (given.size() != count && given.size() != 1) {
    fail(call, "", text("attribute '", name, "' must hold 1 or ", count, " integers; got ", to_string(given)));
  }
  std::vector<int64_t> out;
  for (size_t k = 0; k < count; ++k) {
    const Dim& dim = given[given.size() == 1 ? 0 : k];
    if (!dim.is_static()) fail(call, "", text("attribute '", name, "' must be fixed integers; got ", to_string(given)));
    if (dim.value() > INT32_MAX || dim.value() < INT32_MIN)
      fail(call, "", text("attribute '", name, "' must hold integers of 32 bits; got ", to_string(given)));
    out.push_back(dim.value());
  }
  return out;
}

Dim convolution_groups(const Call& call) {
  const Type &x = call.input(0), &w = call.input(1);
  const std::string_view op = call.op->name;
  if (x.shape.size() != 4 || w.shape.size() != 4) {
    fail(call, text(op, "_c1"),
         text("input and weight must have rank 4; got input ", to_string(x.shape), " and weight ", to_string(w.shape),
              ". Check the input's rank."));
  }
  Dim groups = fixed_integer(call, "groups");
  if (groups.value() < 1 || !is_static(w.shape)) {
    fail(call, text(op, "_c7"),
         text("groups must be positive and the weight's shape fixed; got groups ", groups, " and weight ",
              to_string(w.shape), "."));
  }
  if (!agree(x, w)) {
    fail(call, text(op, "_c2"),
         text("input and weight must have one element type; got ", dtype_name(x.dtype), " and ", dtype_name(w.dtype),
              ". Cast one of them."));
  }
  return groups;
}

void check_parameters(const Call& call, size_t first, size_t last, const Shape& shape, std::string_view label) {
  const Type& x = call.input(0);
  for (size_t k = first; k < last; ++k) {
    if (!call.has(k)) continue;
    const Type& given = call.input(k);
    if (given.shape == shape && (given.dtype == x.dtype || x.quant)) continue;
    fail(call, label,
         text(call.op->inputs[k].name, " must be ", to_string(Type{x.quant ? given.dtype : x.dtype, shape}), "; got ",
              to_string(given), "."));
  }
}

void check_convolution_bias(const Call& call, const Dim& filters) {
  check_parameters(call, 2, 3, {filters}, text(call.op->name, "_c4"));
}

std::vector<int> reduced_axes(const Call& call) {
  const int rank = call.input(0).rank();
  std::vector<int> out;
  for (const Dim& axis : call.integers("axes")) out.push_back(axis_of(call, axis, rank));
  if (rank == 0) return {};  // its one value may be called axis 0, which is none
  if (out.empty()) {
    for (int k = 0; k < rank; ++k) out.push_back(k);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) {
    fail(call, "", text("axes must differ; got ", to_string(call.integers("axes")), "."));
  }
  return out;
}

Shape reduced_shape(const Call& call) {
  const std::vector<int> axes = reduced_axes(call);
  Shape out;
  for (int k = 0; k < call.input(0).rank(); ++k) {
    const bool gone = std::binary_search(axes.begin(), axes.end(), k);
    if (!gone) out.push_back(call.input(0).shape[static_cast<size_t>(k)]);
    if (gone && call.flag("keepdim")) out.push_back(1);
  }
  return out;
}

int64_t fixed_integer(const Call& call, std::string_view name) {
  const Dim given = call.integer(name);
  if (!given.is_static()) fail(call, "", text("attribute '", name, "' must be a fixed integer; got ", given, "."));
  return given.value();
}

Constraint constant_weights(std::string_view label) {
  return {
      "npu", label, "An accelerator packs weights when compiling, so they must be constants.",
      [](const Call& call) -> std::optional<std::pair<std::string, std::string>> {
        if (call.constant(1) && (!call.has(2) || call.constant(2))) return std::nullopt;
        return std::pair<std::string, std::string>{"weight or bias computed at run time", "constant weight and bias"};
      }};
}

int axis_of(const Call& call, const Dim& axis, int rank) {
  if (!axis.is_static()) fail(call, "", text("an axis must be a fixed integer; got ", axis, "."));
  const int64_t given = axis.value();
  const int64_t bound = rank == 0 ? 1 : rank;
  if (given < -bound || given >= bound) {
    fail(call, "",
         text("axis must be in [", -bound, ",", bound, ") for rank ", rank, "; got ", given, ". Check the axis."));
  }
  return static_cast<int>(given < 0 ? given + bound : given);
}

}  // namespace hetnn::ops
