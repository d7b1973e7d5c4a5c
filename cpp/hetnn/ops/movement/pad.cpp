// pad: a border of a value, or of mirrored or repeated elements.
#include "hetnn/ops/movement/pad.h"

#include "hetnn/base/stored.h"
#include "hetnn/ops/late.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<int64_t> padding(const Call& call) {
  return per_axis(call, "padding", 2 * static_cast<size_t>(call.input(0).rank()));
}

// As padding, but sizes may depend on symbols.
std::vector<Dim> padding_dims(const Call& call) {
  const std::vector<Dim>& given = call.integers("padding");
  const size_t count = 2 * static_cast<size_t>(call.input(0).rank());
  if (given.size() == count) return given;
  const std::vector<int64_t> fixed = padding(call);
  return {fixed.begin(), fixed.end()};
}

std::vector<Type> infer(const Call& call) {
  if (!pad_mode_of(call.string("mode"))) {
    fail(call, "pad_c1", text("mode must be constant, reflect, replicate or circular; got ", call.string("mode"), "."));
  }
  const std::vector<Dim> pad = padding_dims(call);
  Shape y = call.input(0).shape;
  for (size_t k = 0; k < y.size(); ++k) {
    y[k] = y[k] + pad[k] + pad[k + y.size()];
    if (y[k].is_static() && y[k].value() < 0)
      fail(call, "pad_c2",
           text("padding must not crop more than there is; got ", to_string(call.integers("padding")), " for ",
                to_string(call.input(0).shape), "."));
  }
  return {{call.input(0).dtype, y}};
}

// For every index of each axis of y what it adds to the position in x; -1: the constant.
std::vector<std::vector<int64_t>> sources(const Call& call, std::span<const int64_t> in, const Result& y) {
  const auto pad = padding(call);
  const PadMode mode = *pad_mode_of(call.string("mode"));
  const Strides strides = strides_of(in);
  std::vector<std::vector<int64_t>> out;
  for (size_t axis = 0; axis < in.size(); ++axis) {
    if (pads_too_far(mode, in[axis], pad[axis], pad[axis + in.size()], y.elems()))
      fail(call, "pad_c3",
           text("axis ", axis, " of size ", in[axis], " is too short for a border of ", pad[axis], " and ",
                pad[axis + in.size()], ". Pad less, or with a constant."));
    out.push_back(pad_sources(mode, in[axis], pad[axis], y.shape[axis]));
    for (int64_t& at : out.back()) at = at < 0 ? -1 : at * strides[axis];
  }
  return out;
}

// Writes the part of y that begins at `axis`, from x's element `from` on (-1: the constant); returns its end.
template <typename T>
T* pad_axis(std::span<const std::vector<int64_t>> axes, const T* x, int64_t from, T value, T* to) {
  if (axes.empty()) {
    *to = from < 0 ? value : x[from];
    return to + 1;
  }
  if (axes.size() == 1) {
    for (const int64_t at : axes[0]) *to++ = from < 0 || at < 0 ? value : x[from + at];
    return to;
  }
  for (const int64_t at : axes[0]) to = pad_axis(axes.subspan(1), x, from < 0 || at < 0 ? -1 : from + at, value, to);
  return to;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const auto axes = sources(e.call, x.shape, y);
  const double value = e.call.real("value");
  uint64_t bits = 0;  // of the constant
  if (is_stored(x.dtype)) {
    bits = stored_bits(x.dtype, value);
  } else {
    write_as<double>({x.dtype, {1}, reinterpret_cast<std::byte*>(&bits)}, {&value, 1});
  }
  visit_width(x.dtype, [&](auto zero) {
    using U = decltype(zero);
    const U constant = *reinterpret_cast<const U*>(&bits);
    pad_axis<U>(axes, reinterpret_cast<const U*>(x.data), 0, constant, reinterpret_cast<U*>(y.data));
  });
}

// The padding of all axes from that of those that are named.
void resolve(const Evaluation& e, Attrs& attrs) {
  const size_t rank = e.input(0).shape.size();
  auto& padding = std::get<std::vector<Dim>>(attrs.at("padding"));
  const std::vector<Dim> amounts = padding;
  std::vector<int64_t> axes = axes_of(e, 3, static_cast<int64_t>(rank));
  for (size_t k = 0; !e.has(3) && k < rank; ++k) axes.push_back(static_cast<int64_t>(k));
  if (amounts.size() != 2 * axes.size()) {
    fail(e.call, "pad_over_c3",
         text("padding must hold two numbers for each of ", axes.size(), " axes; got ", amounts.size(), "."));
  }
  padding.assign(2 * rank, 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    padding[axis] = amounts[k];
    padding[axis + rank] = amounts[k + axes.size()];
    if (std::max(padding[axis].value(), padding[axis + rank].value()) > INT32_MAX)
      fail(e.call, "pad_over_c4", "the padding is too wide.");
  }
}

}  // namespace

OpDef define_pad() {
  return {.name = "pad",
          .doc = "A border of a value, or of mirrored, repeated or wrapped elements; negative sizes crop.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"padding", AttrKind::integers, std::nullopt,
                     "elements before every axis, then elements behind every axis"},
                    {"mode", AttrKind::string, std::string("constant"), "constant, reflect, replicate or circular"},
                    {"value", AttrKind::real, 0.0, "the constant"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"pad(f32[1,2,3,4]) {padding = [0,0,1,2,0,0,0,1], value = 1.5}",
                      "pad(f32[1,2,5,h]) {padding = [0,0,2,1,0,0,2,1], mode = reflect}",
                      "pad(f32[3,n]) {padding = [0,n,0,2*n]}"}};
}

OpDef define_pad_over() {
  return late_form<define_pad, resolve>(
      {.name = "pad_over",
       .doc = "A border as `pad` has it, of widths that are known at run time.",
       .inputs = {{"x", "any shape"},
                  {"padding", "integers: before each of the axes, then behind each"},
                  {"value", "one element of x's type; absent: 0", true},
                  {"axes", "integers; absent: all", true}},
       .samples = {"pad_over(f32[2,3], i64[2] {1, 2}, f32[] {5}, i64[1] {-1}) {sizes = [2,6]}",
                   "pad_over(f32[4,3], i64[4] {1, 1, 2, 0}, _, _) {mode = reflect, sizes = [7,4]}"}});
}

}  // namespace hetnn::ops
