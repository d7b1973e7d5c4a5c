// Movements that do nothing, and movements that follow one another.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/window.h"
#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes::canonical {
namespace {

constexpr std::string_view kBits = "bit for bit";

bool keeps_type(const Match& m) { return m.value("x")->type() == m.root()->output()->type(); }
constexpr Guard kKeepsType = {"the result has the type of x", keeps_type};
ir::Value* keep_x(const Match& m, Build&) { return m.value("x"); }

Rule nothing(std::string_view name, std::string_view equation, Pattern pattern, std::vector<Guard> guards,
             bool quantized = false) {
  return {.name = name,
          .equation = equation,
          .pattern = std::move(pattern),
          .guards = std::move(guards),
          .exactness = kBits,
          .rewrite = keep_x,
          .quantized = quantized};
}

// Scales along an axis would move with it.
bool has_one_scale(const Match& m) {
  const auto& quant = m.root()->output()->type().quant;
  return !quant || quant->per_tensor();
}
constexpr Guard kOneScale = {"quantized values have one scale", has_one_scale};

bool keeps_order(const Match& m) {
  const std::vector<size_t> order = order_of_axes(*m.root());
  return std::is_sorted(order.begin(), order.end());
}
// Axes of size 1 may go anywhere without moving an element.
bool moves_only_ones(const Match& m) {
  std::vector<size_t> order = order_of_axes(*m.root());
  std::erase_if(order, [&](size_t axis) { return m.value("x")->shape()[axis] == Dim(1); });
  return std::is_sorted(order.begin(), order.end());
}

Rule reshape_of_view() {
  return {
      .name = "reshape_of_reshape",
      .equation = "reshape(reshape(x)) = reshape(x)",
      .pattern = op("reshape", {op("reshape", {any("x")})}),
      .guards = {kOneScale},
      .exactness = kBits,
      .rewrite = [](const Match& m, Build& build) { return build.reshape(m.value("x"), m.root()->output()->shape()); },
      .quantized = true};
}

Rule permute_of_permute() {
  return {.name = "permute_of_permute",
          .equation = "permute(permute(x; p); q) = permute(x; p[q])",
          .pattern = op("permute", {op("permute", {any("x")}, "inner")}),
          .guards = {kOneScale},
          .exactness = kBits,
          .rewrite =
              [](const Match& m, Build& build) {
                const std::vector<size_t> inner = order_of_axes(*m.node("inner")), outer = order_of_axes(*m.root());
                std::vector<size_t> order(outer.size());
                std::transform(outer.begin(), outer.end(), order.begin(), [&](size_t axis) { return inner[axis]; });
                return build.op("permute", {m.value("x")}, {{"perm", as_dims(order)}});
              },
          .quantized = true};
}

Rule permute_as_reshape() {
  return {
      .name = "permute_as_reshape",
      .equation = "permute(x) = reshape(x), where only axes of size 1 change places",
      .pattern = op("permute", {any("x")}),
      .guards = {{"the axes longer than 1 keep their order", moves_only_ones}, kOneScale},
      .exactness = kBits,
      .rewrite = [](const Match& m, Build& build) { return build.reshape(m.value("x"), m.root()->output()->shape()); },
      .quantized = true};
}

// Axes of the result in runs of neighbours that are neighbours in x, too, and of axes of size 1.
std::vector<std::vector<size_t>> runs_of(const Match& m) {
  const Shape& x = m.value("x")->shape();
  std::vector<std::vector<size_t>> runs;
  std::optional<size_t> next;  // the axis that would go on with the last run
  for (const size_t axis : order_of_axes(*m.root())) {
    if (x[axis] == Dim(1)) continue;
    if (next != axis) runs.emplace_back();
    runs.back().push_back(axis);
    for (next = axis + 1; *next < x.size() && x[*next] == Dim(1);) ++*next;
  }
  return runs;
}
bool has_fewer_axes(const Match& m) {
  return m.value("x")->rank() > 4 && !moves_only_ones(m) && runs_of(m).size() < m.value("x")->shape().size();
}

// Such as the groups of channels that change places, the pixels going along.
Rule permute_of_fewer_axes() {
  return {
      .name = "permute_of_fewer_axes",
      .equation = "permute(x) = permute(x with neighbours that stay neighbours as one axis), of more than four axes",
      .pattern = op("permute", {any("x")}),
      .guards = {{"x has more than four axes, of which some stay neighbours or have size 1", has_fewer_axes},
                 kOneScale},
      .exactness = kBits,
      .rewrite =
          [](const Match& m, Build& build) {
            const std::vector<std::vector<size_t>> runs = runs_of(m);
            std::vector<size_t> order(runs.size());  // of runs, as their axes lie in x
            std::iota(order.begin(), order.end(), 0);
            std::ranges::sort(order, {}, [&](size_t run) { return runs[run].front(); });
            Shape joined;
            std::vector<Dim> perm(runs.size());
            for (size_t at = 0; at < order.size(); ++at) {
              Dim size = 1;
              for (const size_t axis : runs[order[at]]) size = size * m.value("x")->shape()[axis];
              joined.push_back(size);
              perm[order[at]] = static_cast<int64_t>(at);
            }
            ir::Value* y = build.op("permute", {build.reshape(m.value("x"), joined)}, {{"perm", perm}});
            return build.reshape(y, m.root()->output()->shape());
          },
      .quantized = true};
}

// A line of pixels whose axis of size 1 is left out: what a convolution along one axis ends with.
bool leaves_one_out(const ir::Value& x, const ir::Value& line) {
  if (x.rank() != 4 || line.rank() != 3) return false;
  return std::ranges::any_of(std::array{2, 3}, [&](int axis) {
    Shape rest = x.shape();
    rest.erase(rest.begin() + axis);
    return x.shape()[static_cast<size_t>(axis)] == Dim(1) && rest == line.shape();
  });
}
bool is_line(const Match& m) { return leaves_one_out(*m.value("x"), *m.root()->input(0)); }
bool are_lines(const Match& m) {
  return m.value("x")->shape() == m.value("z")->shape() &&
         std::ranges::all_of(m.root()->inputs(),
                             [&](const ir::Value* line) { return leaves_one_out(*m.value("x"), *line); });
}

// So the next convolution along the axis reads what this one wrote, and its launch takes what stands between.
Rule function_of_line() {
  return {.name = "function_of_line",
          .equation = "f(reshape(x)) = reshape(f(x)), an axis of size 1 being left out",
          .pattern = one_of({"relu", "clamp", "leaky_relu", "elu", "sigmoid", "tanh", "silu", "gelu", "hardswish",
                             "hardsigmoid", "mish"},
                            {exclusive(op("reshape", {any("x")}))}),
          .guards = {{"x is [N,C,H,W] with H or W 1, which the reshape leaves out", is_line}},
          .exactness = kBits,
          .rewrite = [](const Match& m, Build& build) {
            return build.reshape(build.like(*m.root(), {m.value("x")}), m.root()->output()->shape());
          }};
}

// The reshape among the inputs, and what it reads.
const ir::Value* line_of(const Match& m) {
  const ir::Node* first = m.root()->input(0)->producer();
  return m.root()->input(first && !first->is_constant() && first->input(0) == m.value("x") ? 0 : 1);
}
bool has_values_of_channels(const Match& m) {
  const Shape& c = m.value("c")->shape();
  const ir::Value* line = line_of(m);
  return m.root()->output()->shape() == line->shape() && leaves_one_out(*m.value("x"), *line) &&
         (c.empty() || c.back() == Dim(1)) && (c.size() < 3 || c[0] == Dim(1));
}

Rule channels_of_line() {
  return {
      .name = "channels_of_line",
      .equation =
          "reshape(x) c = reshape(x c) with values c of the channels, an axis of size 1 being left out; "
          "reshape(x) + c, reshape(x) - c and reshape(x) / c likewise",
      .pattern = one_of({"mul", "add", "sub", "div"}, {exclusive(op("reshape", {any("x")})), constant("c")}),
      .guards = {{"x is [N,C,H,W] with H or W 1, which the reshape leaves out, and c has one value for each channel",
                  has_values_of_channels}},
      .exactness = kBits,
      .rewrite = [](const Match& m, Build& build) {
        Shape shape = m.value("c")->shape();
        if (!shape.empty()) shape.push_back(1);
        ir::Value* c = build.reshape(m.value("c"), shape);
        return build.reshape(build.like(*m.root(), {m.value("x"), c}), m.root()->output()->shape());
      }};
}

Rule sum_of_lines() {
  return {
      .name = "sum_of_lines",
      .equation = "reshape(x) + reshape(z) = reshape(x + z), an axis of size 1 being left out; differences, products",
      .pattern = one_of({"add", "sub", "mul"}, {op("reshape", {any("x")}), op("reshape", {any("z")})}),
      .guards = {{"x and z are [N,C,H,W] of one shape with H or W 1, which the reshapes leave out", are_lines}},
      .exactness = kBits,
      .rewrite = [](const Match& m, Build& build) {
        // A commutative pair may have matched the other way round.
        ir::Value* x = m.root()->input(0)->producer()->input(0);
        ir::Value* z = m.root()->input(1)->producer()->input(0);
        return build.reshape(build.like(*m.root(), {x, z}), m.root()->output()->shape());
      }};
}

bool pads_nothing(const Match& m) {
  const std::vector<Dim>& padding = m.root()->integers("padding");
  return std::all_of(padding.begin(), padding.end(), [](const Dim& dim) { return dim == Dim(0); });
}

// Zeros before and behind height and width, and nowhere else.
bool pads_pixels_with_zeros(const Match& m) {
  const ir::Node& pad = *m.node("pad");
  const std::vector<Dim>& p = pad.integers("padding");
  const bool constant_zero = pad.string("mode") == std::string_view("constant") && pad.real("value") == 0;
  const auto is_fixed = [&](size_t k) { return p[k].is_static() && p[k].value() >= 0; };
  return constant_zero && p.size() == 8 && p[0] == Dim(0) && p[1] == Dim(0) && p[4] == Dim(0) && p[5] == Dim(0) &&
         is_fixed(2) && is_fixed(3) && is_fixed(6) && is_fixed(7);
}

Rule pad_into_convolution() {
  return {
      .name = "pad_into_convolution",
      .equation = "conv2d(pad(x; zeros t, l, b, r), w; padding p) = conv2d(x, w; padding p + (t, l, b, r))",
      .pattern = op("conv2d", {op("pad", {any("x")}, "pad"), any("w")}),
      .guards = {{"the padding is zeros, of fixed width, along height and width only", pads_pixels_with_zeros}},
      .exactness = kBits,
      .rewrite = [](const Match& m, Build& build) {
        const std::vector<Dim>& p = m.node("pad")->integers("padding");
        ops::Window window = ops::window_of(m.root()->call());
        for (size_t k = 0; k < 2; ++k) {
          window[k].before += p[2 + k].value();
          window[k].after += p[6 + k].value();
        }
        const std::vector<Dim> sum = ops::padding_attr(window);
        const std::vector<Dim> padding = sum[0] == sum[2] && sum[1] == sum[3] ? std::vector<Dim>{sum[0], sum[1]} : sum;
        return build.like(*m.root(), {m.value("x"), m.value("w"), m.root()->input(2)}, {{"padding", padding}});
      }};
}

// [before, reduced, after] of a reduction over axes that stand side by side; nullopt where they do not.
std::optional<Shape> three_axes(const ir::Node& reduction) {
  const std::vector<int> axes = ops::reduced_axes(reduction.call());
  if (axes.empty() || axes.back() - axes.front() + 1 != static_cast<int>(axes.size())) return std::nullopt;
  const Shape& x = reduction.input(0)->shape();
  const int first = axes.front(), end = axes.back() + 1;
  return Shape{elements(x, 0, first), elements(x, first, end), elements(x, end)};
}
bool has_many_axes(const Match& m) { return m.value("x")->rank() > 4; }
bool axes_stand_together(const Match& m) { return three_axes(*m.root()).has_value(); }

Rule reduce_three_axes() {
  return {
      .name = "reduce_three_axes",
      .equation = "max over axes a..b of x = max over axis 1 of x as [before a, a..b, after b]; min likewise",
      .pattern = one_of({"reduce_max", "reduce_min"}, {any("x")}),
      .guards = {{"x has more than four axes", has_many_axes}, {"the axes stand side by side", axes_stand_together}},
      .exactness = kBits,
      .rewrite = [](const Match& m, Build& build) {
        const std::vector<Dim> axes = {1};
        ir::Value* x = build.reshape(m.value("x"), *three_axes(*m.root()));
        ir::Value* y = build.like(*m.root(), {x}, {{"axes", axes}, {"keepdim", false}});
        return build.reshape(y, m.root()->output()->shape());
      }};
}

// Its inputs are slices of x along its own axis, one behind another from the first index to the last.
bool joins_what_was_cut(const Match& m) {
  const ir::Node& concat = *m.root();
  const ir::Value* x = m.value("x");
  const int axis = ops::axis_of(concat.call(), concat.integer("axis"), x->rank());
  Dim at = 0;
  for (const ir::Value* input : concat.inputs()) {
    const ir::Node* part = input->producer();
    if (!part || part->op().name != "slice" || part->input(0) != x || part->integer("step") != Dim(1)) return false;
    if (ops::axis_of(part->call(), part->integer("axis"), x->rank()) != axis || part->integer("start") != at)
      return false;
    at = at + input->shape()[static_cast<size_t>(axis)];
  }
  return true;
}

// Where along the axis the one index of a gather leads; none where there are several, or the size is open.
std::optional<int64_t> place_of(const Match& m) {
  const ir::Node& gather = *m.root();
  const std::optional<double> index = single_value(*m.tensor("index"));
  const Shape& x = m.value("x")->shape();
  const Dim size = x[static_cast<size_t>(ops::axis_of(gather.call(), gather.integer("axis"), m.value("x")->rank()))];
  if (!index || m.tensor("index")->elems() != 1 || !size.is_static()) return std::nullopt;
  const auto at = static_cast<int64_t>(*index), first = gather.flag("from_end") ? -size.value() : 0;
  if (at < first || at >= size.value()) return std::nullopt;
  return at < 0 ? at + size.value() : at;
}

Rule gather_of_one() {
  return {.name = "gather_of_one",
          .equation = "gather(x; k) = reshape(x[k:k + 1])",
          .pattern = op("gather", {any("x"), constant("index")}),
          .guards = {{"there is one index, inside an axis of fixed size",
                      [](const Match& m) { return place_of(m).has_value(); }}},
          .exactness = kBits,
          .rewrite = [](const Match& m, Build& build) {
            const int64_t at = *place_of(m);
            ir::Value* part = build.op("slice", {m.value("x")},
                                       {{"axis", m.root()->integer("axis")}, {"start", Dim(at)}, {"end", Dim(at + 1)}});
            return build.reshape(part, m.root()->output()->shape());
          }};
}

bool keeps_rows(const Match& m) {
  const Shape& shape = m.root()->output()->shape();
  return !shape.empty() && shape.back() == m.value("rows")->shape().back();
}

// As torch's ATen level has every linear layer; what stands before and behind meets it without the reshapes.
Rule linear_of_joined_axes() {
  return {.name = "linear_of_joined_axes",
          .equation = "reshape(linear(reshape(x))) = linear(reshape(x))",
          .pattern = op("reshape", {exclusive(op("linear", {op("reshape", {any("x")})}, "rows"))}),
          .guards = {{"the result keeps the last axis of the linear layer", keeps_rows}},
          .exactness = kBits,
          .rewrite = [](const Match& m, Build& build) {
            const ir::Node& linear = *m.node("rows");
            Shape shape = m.root()->output()->shape();
            shape.back() = linear.input(0)->shape().back();
            std::vector<ir::Value*> inputs = linear.inputs();
            inputs.front() = build.reshape(m.value("x"), shape);
            return build.like(linear, inputs);
          }};
}

bool divides_by_one_number(const Match& m) {
  const Tensor& c = *m.tensor("c");
  return c.elems() == 1 && static_cast<int>(c.shape().size()) <= m.value("x")->rank();
}

// What the gradient of a mean is: one quotient a mean in place of one an element.
Rule quotient_of_expanded() {
  return {.name = "quotient_of_expanded",
          .equation = "expand(x) / c = expand(x / c)",
          .pattern = op("div", {op("expand", {any("x")}), constant("c")}),
          .guards = {{"c is one number, of no more axes than x", divides_by_one_number}},
          .exactness = kBits,
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* quotient = build.like(*m.root(), {m.value("x"), m.root()->input(1)});
            return build.op("expand", {quotient}, {{"shape", m.root()->output()->shape()}});
          }};
}

// Functions of several operands that broadcast.
std::vector<std::string_view> functions_of_several() {
  std::vector<std::string_view> out;
  for (const ops::OpDef* op : ops::OpTable::global().all()) {
    if (op->has(ops::Trait::elementwise) && !op->has(ops::Trait::channelwise) && op->inputs.size() > 1)
      out.push_back(op->name);
  }
  return out;
}

bool is_expanded(const ir::Value& x) { return x.producer() && x.producer()->op().name == "expand"; }
// The operand that is expanded beside one that has the result's shape by itself; -1 where there is none.
int expanded_operand(const Match& m) {
  const std::vector<ir::Value*>& in = m.root()->inputs();
  const auto is_whole = [&](const ir::Value* x) { return x->shape() == m.root()->output()->shape(); };
  for (size_t k = 0; k < in.size(); ++k) {
    if (!is_expanded(*in[k]) || in[k]->type().quant) continue;
    for (size_t other = 0; other < in.size(); ++other)
      if (other != k && is_whole(in[other])) return static_cast<int>(k);
  }
  return -1;
}

// What broadcasts is read where it lies.
Rule function_of_expanded() {
  return {.name = "function_of_expanded",
          .equation = "f(expand(x), y) = f(x, y)",
          .pattern = one_of(functions_of_several()),
          .guards = {{"an operand of reals is expanded, another one has the result's shape",
                      [](const Match& m) { return expanded_operand(m) >= 0; }}},
          .exactness = kBits,
          .rewrite = [](const Match& m, Build& build) {
            std::vector<ir::Value*> inputs = m.root()->inputs();
            ir::Value*& expanded = inputs[static_cast<size_t>(expanded_operand(m))];
            expanded = expanded->producer()->input(0);
            return build.like(*m.root(), inputs);
          }};
}

bool step_is_one(const Match& m) { return m.root()->integer("step") == Dim(1); }

}  // namespace

const RuleSet& movement() {
  static const RuleSet set = {
      "movement",
      "Movements that do nothing, movements that follow one another, and axes that may be joined.",
      {nothing("identity_nothing", "identity(x) = x", op("identity", {any("x")}), {}),
       nothing("reshape_nothing", "reshape(x) = x", op("reshape", {any("x")}), {kKeepsType}, true),
       nothing("permute_nothing", "permute(x) = x", op("permute", {any("x")}),
               {{"the axes keep their order", keeps_order}, kKeepsType}, true),
       nothing("expand_nothing", "expand(x) = x", op("expand", {any("x")}), {kKeepsType}),
       nothing("cast_nothing", "cast(x) = x", op("cast", {any("x")}), {kKeepsType}),
       nothing("slice_nothing", "x[:] = x", op("slice", {any("x")}), {{"the step is 1", step_is_one}, kKeepsType}),
       nothing("pad_nothing", "pad(x; 0) = x", op("pad", {any("x")}), {{"every width is 0", pads_nothing}}),
       nothing("concat_of_one", "concat(x) = x", op("concat", {any("x")}),
               {{"there is one input", [](const Match& m) { return m.root()->inputs().size() == 1; }}}),
       nothing("concat_of_slices", "concat(x[:a], x[a:b], x[b:]) = x", op("concat", {op("slice", {any("x")})}),
               {{"the parts follow one another", joins_what_was_cut}, kKeepsType}),
       reshape_of_view(),
       linear_of_joined_axes(),
       quotient_of_expanded(),
       function_of_expanded(),
       function_of_line(),
       channels_of_line(),
       sum_of_lines(),
       permute_of_permute(),
       permute_as_reshape(),
       permute_of_fewer_axes(),
       gather_of_one(),
       pad_into_convolution(),
       reduce_three_axes()}};
  return set;
}

}  // namespace hetnn::passes::canonical
