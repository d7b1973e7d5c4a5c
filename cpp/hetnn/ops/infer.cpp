// Shape inference shared by operator files.
#include "hetnn/ops/infer.h"

#include <algorithm>

namespace hetnn::ops {

std::vector<ir::Type> same_as_input(const ir::Node& node) { return {node.input(0)->type()}; }

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

std::vector<ir::Type> broadcast_inputs(const ir::Node& node) {
  ir::Type type = node.input(0)->type();
  for (size_t k = 1; k < node.inputs().size(); ++k) {
    const ir::Type& other = node.input(k)->type();
    if (other.dtype != type.dtype) {
      ir::fail(node, text(node.op().name, "_c1"),
               text("its inputs must have one element type; got ", dtype_name(type.dtype), " and ",
                    dtype_name(other.dtype), ". Cast one of them."));
    }
    auto shape = broadcast(type.shape, other.shape);
    if (!shape) {
      ir::fail(node, text(node.op().name, "_c2"),
               text("its inputs must broadcast; got ", to_string(type.shape), " and ", to_string(other.shape),
                    ". Check the shapes that meet here."));
    }
    type.shape = std::move(*shape);
  }
  return {type};
}

std::vector<ir::Type> compare_inputs(const ir::Node& node) {
  return {{DType::boolean, broadcast_inputs(node).front().shape}};
}

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

std::vector<int64_t> per_axis(const ir::Node& node, std::string_view name, size_t count) {
  const std::vector<Dim>& given = node.integers(name);
  if (given.size() != count && given.size() != 1) {
    ir::fail(node, "", text("attribute '", name, "' must hold 1 or ", count, " integers; got ", to_string(given)));
  }
  std::vector<int64_t> out;
  for (size_t k = 0; k < count; ++k) {
    const Dim& dim = given[given.size() == 1 ? 0 : k];
    if (!dim.is_static())
      ir::fail(node, "", text("attribute '", name, "' must be fixed integers; got ", to_string(given)));
    out.push_back(dim.value());
  }
  return out;
}

std::vector<int64_t> padding_of(const ir::Node& node) {
  if (node.integers("padding").size() == 4) return per_axis(node, "padding", 4);
  const std::vector<int64_t> p = per_axis(node, "padding", 2);
  return {p[0], p[1], p[0], p[1]};
}

std::vector<int64_t> stride_of(const ir::Node& node) {
  return node.integers("stride").empty() ? per_axis(node, "kernel", 2) : per_axis(node, "stride", 2);
}

Dim convolution_groups(const ir::Node& node) {
  const ir::Type &x = node.input(0)->type(), &w = node.input(1)->type();
  const std::string_view op = node.op().name;
  if (x.shape.size() != 4 || w.shape.size() != 4) {
    ir::fail(node, text(op, "_c1"),
             text("input and weight must have rank 4; got input ", to_string(x.shape), " and weight ",
                  to_string(w.shape), ". Check the input's rank."));
  }
  Dim groups = fixed_integer(node, "groups");
  if (groups.value() < 1 || !is_static(w.shape)) {
    ir::fail(node, text(op, "_c7"),
             text("groups must be positive and the weight's shape fixed; got groups ", groups, " and weight ",
                  to_string(w.shape), "."));
  }
  if (x.dtype != w.dtype) {
    ir::fail(node, text(op, "_c2"),
             text("input and weight must have one element type; got ", dtype_name(x.dtype), " and ",
                  dtype_name(w.dtype), ". Cast one of them."));
  }
  return groups;
}

void check_convolution_bias(const ir::Node& node, const Dim& filters) {
  if (!node.input(2) || node.input(2)->shape() == Shape{filters}) return;
  ir::fail(node, text(node.op().name, "_c4"),
           text("bias must be ", to_string(Shape{filters}), "; got ", to_string(node.input(2)->shape()), "."));
}

std::vector<int> reduced_axes(const ir::Node& node) {
  const int rank = node.input(0)->rank();
  std::vector<int> out;
  for (const Dim& axis : node.integers("axes")) out.push_back(axis_of(node, axis, rank));
  if (out.empty()) {
    for (int k = 0; k < rank; ++k) out.push_back(k);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) {
    ir::fail(node, "", text("axes must differ; got ", to_string(node.integers("axes")), "."));
  }
  return out;
}

Shape reduced_shape(const ir::Node& node) {
  const std::vector<int> axes = reduced_axes(node);
  Shape out;
  for (int k = 0; k < node.input(0)->rank(); ++k) {
    const bool gone = std::binary_search(axes.begin(), axes.end(), k);
    if (!gone) out.push_back(node.input(0)->shape()[static_cast<size_t>(k)]);
    if (gone && node.flag("keepdim")) out.push_back(1);
  }
  return out;
}

int64_t fixed_integer(const ir::Node& node, std::string_view name) {
  const Dim given = node.integer(name);
  if (!given.is_static()) ir::fail(node, "", text("attribute '", name, "' must be a fixed integer; got ", given, "."));
  return given.value();
}

ir::Constraint constant_weights(std::string_view label) {
  return {
      "npu", label, "An accelerator packs weights when compiling, so they must be constants.",
      [](const ir::Node& node) -> std::optional<std::pair<std::string, std::string>> {
        if (node.constant_input(1) && (!node.input(2) || node.constant_input(2))) return std::nullopt;
        return std::pair<std::string, std::string>{"weight or bias computed at run time", "constant weight and bias"};
      }};
}

int axis_of(const ir::Node& node, const Dim& axis, int rank) {
  if (!axis.is_static()) ir::fail(node, "", text("an axis must be a fixed integer; got ", axis, "."));
  const int64_t given = axis.value();
  const int64_t bound = rank == 0 ? 1 : rank;
  if (given < -bound || given >= bound) {
    ir::fail(node, "",
             text("axis must be in [", -bound, ",", bound, ") for rank ", rank, "; got ", given, ". Check the axis."));
  }
  return static_cast<int>(given < 0 ? given + bound : given);
}

}  // namespace hetnn::ops
