// pointwise_depthwise_conv2d: a 1x1 convolution, a function of its result, and a convolution a channel of that, as
// inverted bottlenecks begin.
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/window.h"

namespace hetnn::ops {
namespace {

constexpr std::array<std::string_view, 5> kFunctions = {"", "relu", "clamp", "silu", "hardswish"};

// A call of the operator on such operands, and what it writes.
class Part {
 public:
  Part(const Call& whole, std::string_view op, std::vector<const Type*> inputs, Attrs attrs)
      : call_{&OpTable::global().get(op), {}, {}, std::move(attrs), whole.name, whole.loc} {
    for (const Type* type : inputs) call_.inputs.push_back({type, nullptr});
    complete(call_);
    types_ = infer_types(call_);
    call_.outputs.push_back(&types_.front());
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  const Call& call() const { return call_; }
  const Type& type() const { return types_.front(); }

 private:
  Call call_;
  std::vector<Type> types_;
};

const Type* given(const Call& call, size_t k) { return call.has(k) ? &call.input(k) : nullptr; }

Attrs function_attrs(const Call& call) {
  const std::vector<double>& values = call.reals("values");
  return values.size() == 2 ? Attrs{{"min", values[0]}, {"max", values[1]}} : Attrs();
}

Attrs window_attrs(const Call& call, const Type& between) {
  Attrs out = {{"groups", between.shape[1]}};
  for (const char* name : {"stride", "padding", "dilation"}) out.emplace(name, call.integers(name));
  return out;
}

// x [N,I,H,W], pointwise [C,I,1,1], depthwise [C,1,KH,KW], both biases [C] -> y [N,C,OH,OW].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &pointwise = call.input(1), &depthwise = call.input(2);
  const bool fits = x.shape.size() == 4 && pointwise.shape.size() == 4 && depthwise.shape.size() == 4 &&
                    is_static(pointwise.shape) && is_static(depthwise.shape) &&
                    pointwise.shape == Shape{pointwise.shape[0], x.shape[1], 1, 1} &&
                    depthwise.shape[0] == pointwise.shape[0] && depthwise.shape[1] == Dim(1);
  if (!fits) {
    fail(call, "pointwise_depthwise_conv2d_c1",
         text("input and weights must be [N,I,H,W], [C,I,1,1] and [C,1,KH,KW]; got ", to_string(x), ", ",
              to_string(pointwise), " and ", to_string(depthwise), ". Check the shapes."));
  }
  const std::string& function = call.string("function");
  const size_t wanted = function == "clamp" ? 2 : 0;
  if (std::ranges::find(kFunctions, function) == kFunctions.end() || call.reals("values").size() != wanted) {
    fail(call, "pointwise_depthwise_conv2d_c2",
         text("the function between must be relu, silu or hardswish, clamp with two values, or none; got '", function,
              "' with ", call.reals("values").size(), " values."));
  }
  const Part first(call, "conv2d", {&x, &pointwise, given(call, 3)}, {});
  const Part second(call, "conv2d", {&first.type(), &depthwise, given(call, 4)}, window_attrs(call, first.type()));
  return {second.type()};
}

void meaning(const Evaluation& e) {
  const Call& call = e.call;
  // Of the caller's bytes.
  const auto tensor = [&](size_t k) -> std::optional<Tensor> {
    if (!e.has(k)) return std::nullopt;
    const View& view = e.input(k);
    return Tensor(view.dtype, {view.shape.begin(), view.shape.end()}, nullptr, view.data);
  };
  const Part first(call, "conv2d", {&call.input(0), &call.input(1), given(call, 3)}, {});
  Tensor between = std::move(
      evaluate(first.call(), std::vector<std::optional<Tensor>>{tensor(0), tensor(1), tensor(3)}, {}).front());
  if (const std::string& function = call.string("function"); !function.empty()) {
    const Part applied(call, function, {&first.type()}, function_attrs(call));
    between = std::move(evaluate(applied.call(), std::vector<std::optional<Tensor>>{std::move(between)}, {}).front());
  }
  const Part second(call, "conv2d", {&first.type(), &call.input(2), given(call, 4)}, window_attrs(call, first.type()));
  const View views[] = {View(between), e.input(2), e.has(4) ? e.input(4) : View()};
  evaluate(second.call(), views, e.results, e.host);
}

Work work(const Call& call) {
  const Shape &x = call.input(0).shape, &w = call.input(2).shape;
  const Dim between = x[0] * w[0] * x[2] * x[3];
  return {.macs = between * x[1] + elements(call.output().shape) * w[2] * w[3], .flops = between};
}

}  // namespace

OpDef define_pointwise_depthwise_conv2d() {
  return {
      .name = "pointwise_depthwise_conv2d",
      .doc =
          "A 1x1 convolution, a function of its result, and a convolution a channel: y = conv2d(f(conv2d(x, "
          "pointwise, pointwise_bias)), depthwise, bias).",
      .inputs = {{"x", "[N,I,H,W]"},
                 {"pointwise", "[C,I,1,1]"},
                 {"depthwise", "[C,1,KH,KW]"},
                 {"pointwise_bias", "[C]", true},
                 {"bias", "[C]", true}},
      .attrs = {{"stride", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"},
                {"padding", AttrKind::integers, std::vector<Dim>{0, 0}, "height, width; or top, left, bottom, right"},
                {"dilation", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"},
                {"function", AttrKind::string, std::string(), "relu, clamp, silu or hardswish; empty: none"},
                {"values", AttrKind::reals, std::vector<double>{}, "of clamp, the smallest and the largest"}},
      .traits = Trait::compute | Trait::wide,
      .torch = {},
      .onnx = {},
      .infer = infer,
      .meaning = meaning,
      .work = work,
      .keeps_batch = keeps_batch_of_first,
      .constraints = {},
      .tolerance = 1e-5,
      .samples = {"pointwise_depthwise_conv2d(f32[2,5,6,4], f32[7,5,1,1], f32[7,1,3,3], f32[7], f32[7]) {padding = "
                  "[1,1], function = \"relu\"}",
                  "pointwise_depthwise_conv2d(f32[1,4,9,8], f32[6,4,1,1], f32[6,1,3,2], _, f32[6]) {stride = [2,1], "
                  "padding = [1,0], function = \"clamp\", values = [0, 6]}",
                  "pointwise_depthwise_conv2d(f32[n,4,9,w], f32[6,4,1,1], f32[6,1,3,3], _, _) {padding = [1,1], "
                  "function = \"silu\"}"}};
}

}  // namespace hetnn::ops
