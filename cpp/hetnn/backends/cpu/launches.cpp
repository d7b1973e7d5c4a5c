// From fused nodes to launches over values, with a layout for every value.
#include "hetnn/backends/cpu/launches.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/query/best.h"
#include "hetnn/kernels/row_view.h"
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/infer.h"
#include "hetnn/passes/fuse.h"

namespace hetnn::backends::cpu {
namespace {

// Position of the input of `follower` that is `main`, or -1 when it reads `main` twice or not at all.
int main_input(const ir::Node& follower, const ir::Value& main) {
  int found = -1;
  for (size_t k = 0; k < follower.inputs().size(); ++k) {
    if (follower.input(k) != &main) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(k);
  }
  return found;
}

// `follower` as a step on `main`; nullopt where it is none.
std::optional<kernels::Step> step_on(const ir::Node& follower, const ir::Value& main) {
  const int at = main_input(follower, main);
  if (at < 0) return std::nullopt;
  return kernels::step_of(follower.call(), static_cast<size_t>(at));
}

// The axis that kernels call channels: of a matrix product the last one, else the second. -1 where rows are those of
// the layout that the kernel is given: of plain memory they have no channels.
int channel_axis_of(const kernels::Variant& variant, const ir::Value& output) {
  if (variant.layout == kernels::LayoutWish::kept) return -1;
  const bool last = variant.layout == kernels::LayoutWish::plain || output.rank() < 2;
  return last ? output.rank() - 1 : 1;
}

// What a step can take as an operand: the output's shape, one element, or a value a channel. The last is passed flat,
// which only a constant can be without a copy.
bool operand_fits(const ir::Node& follower, const ir::Value& operand, const Shape& output, int channel_axis) {
  if (operand.shape() == output || elements(operand.shape()) == Dim(1)) return true;
  if (follower.op().has(ops::Trait::channelwise)) return channel_axis == 1;
  if (!is_constant(operand) || operand.shape().size() > output.size()) return false;
  for (size_t k = 0; k < operand.shape().size(); ++k) {
    const size_t axis = output.size() - operand.shape().size() + k;
    if (operand.shape()[k] != Dim(1) && static_cast<int>(axis) != channel_axis) return false;
  }
  return true;
}

// Whether an operand broadcasts as it lies: one of one axis could be one of the channels.
bool broadcasts_in_place(const ir::Value& operand, const Shape& output) {
  return operand.shape().size() != 1 && operand.shape().size() <= output.size() &&
         ops::broadcast(operand.shape(), output) == output;
}

// The shape in which a step takes a constant: slopes flat, one value as one element, else all axes but the channels 1.
Shape operand_shape(const ir::Node& follower, const ir::Value& operand, const ir::Value& output, int channel_axis) {
  const Dim count = elements(operand.shape());
  if (count == Dim(1) || follower.op().has(ops::Trait::channelwise) || channel_axis == output.rank() - 1)
    return {count};
  Shape out(static_cast<size_t>(output.rank()), 1);
  out[static_cast<size_t>(channel_axis)] = count;
  return out;
}

kernels::TensorView view_of(const ir::Value& value, const Layouts& layouts, const Bindings& bindings) {
  const std::vector<int64_t> shape = evaluate(value.shape(), bindings);
  const auto at = layouts.find(&value);
  if (at == layouts.end() || at->second.layout == Layout::plain)
    return kernels::TensorView::plain(value.dtype(), shape);
  if (at->second.layout == Layout::strided)
    return kernels::TensorView::strided(value.dtype(), shape, evaluate(at->second.strides, bindings));
  return kernels::TensorView::nhwc(value.dtype(), shape, at->second.pitch.evaluate(bindings));
}

}  // namespace

bool is_constant(const ir::Value& value) { return value.producer() && value.producer()->is_constant(); }

ConcreteLaunch::ConcreteLaunch(const Launch& launch, const Layouts& layouts, const Bindings& bindings)
    : bound(launch.anchor->call(), bindings), params(kernels::params_of(bound.call())) {
  for (const ir::Value* input : launch.inputs) {
    positions.push_back(input ? static_cast<int>(inputs.size()) : -1);
    if (input) inputs.push_back(view_of(*input, layouts, bindings));
  }
  for (const auto& [k, shape] : launch.operand_shapes) {
    kernels::TensorView& view = inputs[static_cast<size_t>(positions[k])];
    if (is_constant(*launch.inputs[k])) view = kernels::TensorView::plain(view.dtype, evaluate(shape, bindings));
  }
  for (const ir::Value* output : launch.outputs) outputs.push_back(view_of(*output, layouts, bindings));
  if (!launch.variant || !launch.variant->tiles) outputs[0].dtype = launch.anchor->output()->dtype();
  for (const LaunchStep& step : launch.steps) {
    steps.push_back(step.step);
    if (step.operand < 0) continue;
    steps.back().input = positions[static_cast<size_t>(step.operand)];
    for (int k = step.operand; k < step.operand + step.operands; ++k) {
      kernels::TensorView& view = inputs[static_cast<size_t>(positions[static_cast<size_t>(k)])];
      if (outputs[0].layout != Layout::nhwc || !std::ranges::equal(view.shape(), outputs[0].shape()) ||
          kernels::as_nhwc(view))
        continue;
      const ValueLayout turned = turned_layout(*launch.inputs[static_cast<size_t>(k)]);
      view = kernels::TensorView::nhwc(view.dtype, view.shape(), turned.pitch.evaluate(bindings));
    }
  }
}

namespace {

// Whether the variant serves what the node computes alone, with such steps behind it. Of constants that it packs the
// call has the packed views; other weights are given plain.
bool serves(const kernels::Variant& variant, const Launch& alone, ConcreteLaunch& concrete) {
  const auto is_there = [&](size_t k) { return alone.inputs[k] && is_constant(*alone.inputs[k]); };
  std::vector<std::pair<size_t, kernels::TensorView>> given;
  bool takes = true;
  for (size_t k = 0; takes && k < alone.inputs.size(); ++k) {
    const int at = concrete.position(k);
    if (at < 0) continue;
    const bool is_weight = variant.is_weight && variant.is_weight(concrete.call(), at);
    if ((is_weight && !variant.packer) || (variant.is_table && variant.is_table(static_cast<int>(k))))
      takes = is_there(k);
    if (!is_weight) continue;
    kernels::TensorView& view = concrete.inputs[static_cast<size_t>(at)];
    given.emplace_back(at, view);
    view = is_there(k) ? kernels::TensorView::of_weight(view.dtype, view.shape())
                       : kernels::TensorView::plain(view.dtype, view.shape());
  }
  const bool out = takes && !kernels::refusal_of(variant, concrete.call());
  for (const auto& [at, view] : given) concrete.inputs[at] = view;
  return out;
}

Launch alone_of(const ir::Node& node) {
  return {.anchor = &node,
          .inputs = {node.inputs().begin(), node.inputs().end()},
          .outputs = {node.outputs().begin(), node.outputs().end()}};
}

// A sum with one other value of the type of the launch, which lies as its result does.
bool is_narrow_sum(const kernels::Step& step) {
  return step.function == kernels::kSumOfI8 ||
         (kernels::is_sum(step) && is_narrow_float(kernels::operand_type(step)) && step.values.size() == 2);
}

bool has_rank_of_kernels(const ir::Value* value) {
  return !value || value->shape().size() <= kernels::TensorView().dims.size();
}

}  // namespace

const kernels::Variant* variant_for(const ir::Node& node, const Bindings& bindings, std::vector<kernels::Step> steps) {
  const std::vector<const kernels::Variant*> variants = kernels::variants_of(node.call());
  if (variants.empty() || !std::ranges::all_of(node.inputs(), has_rank_of_kernels) ||
      !std::ranges::all_of(node.outputs(), has_rank_of_kernels))
    return nullptr;
  const Launch alone = alone_of(node);
  std::optional<ConcreteLaunch> concrete;
  try {
    concrete.emplace(alone, Layouts(), bindings);
  } catch (const InvalidModel&) {
    return nullptr;  // sizes that the model does not hold for: there is no call to ask a kernel about
  }
  concrete->steps = std::move(steps);
  for (kernels::Step& step : concrete->steps) {
    if (!is_narrow_sum(step)) continue;
    step.input = static_cast<int>(concrete->inputs.size());
    concrete->inputs.push_back(concrete->outputs[0]);
  }
  return kernels::best(variants, concrete->call(),
                       [&](const kernels::Variant& variant) { return serves(variant, alone, *concrete); });
}

const kernels::Variant* settled(const Launch& launch, ConcreteLaunch& concrete, const kernels::Machine& machine) {
  const kernels::Variant& own = *launch.variant;
  if (own.layout != kernels::LayoutWish::channels_last) return &own;
  std::vector<const kernels::Variant*> alike = kernels::variants_of(launch.anchor->call());
  std::erase_if(alike, [&](const kernels::Variant* each) {
    return each->layout != own.layout || each->takes_steps != own.takes_steps;
  });
  if (alike.size() == 1) return &own;
  return kernels::best(
      alike, concrete.call(), [&](const kernels::Variant& variant) { return serves(variant, launch, concrete); },
      machine);
}

std::optional<Chosen> chosen_among_others(const ir::Node& node, const Bindings& bindings,
                                          const kernels::Machine& machine) {
  const kernels::Variant* variant = variant_for(node, bindings);
  if (!variant) return std::nullopt;
  Launch alone = alone_of(node);
  alone.variant = variant;
  Layouts layouts;
  if (variant->layout == kernels::LayoutWish::channels_last) {
    const auto turn = [&](const ir::Value* value) {
      if (value && ops::is_feature_map(value->type()) && !is_constant(*value))
        layouts.emplace(value, channels_last(*value));
    };
    std::ranges::for_each(node.outputs(), turn);
    for (const ir::Value* input : node.inputs())
      if (input && input->producer()) turn(input);
  }
  auto concrete = std::make_unique<ConcreteLaunch>(alone, layouts, bindings);
  const kernels::Variant* best = settled(alone, *concrete, machine);
  return Chosen{best ? best : variant, std::move(concrete)};
}

namespace {

// Whether one elementwise operator reads what the node makes, and nothing else.
bool is_followed(const ir::Node& node) {
  const auto& uses = node.output()->uses();
  return uses.size() == 1 && uses.front().node->op().has(ops::Trait::elementwise);
}

}  // namespace

bool computes_halves(const ir::Node& node, const Bindings& bindings) {
  const kernels::Variant* variant = variant_for(node, bindings);
  if (!variant || !variant->halves) return false;
  // Beside one of f32 that takes the steps behind it, one that takes none makes kernels of them.
  if (!variant->takes_steps && is_followed(node)) return false;
  const Launch alone = alone_of(node);
  return variant->halves(ConcreteLaunch(alone, {}, bindings).call());
}

bool bounds_halves(const ir::Node& node, const Bindings& bindings) {
  const auto producer_of = [](const ir::Value* x) {
    return x && is_narrow_float(x->dtype()) && x->uses().size() == 1 ? x->producer() : nullptr;
  };
  const ir::Node* last = producer_of(node.input(0));
  if (!last) return false;
  if (computes_halves(*last, bindings)) return can_follow(std::span(&last, 1), node, bindings);
  return std::ranges::any_of(last->inputs(), [&](const ir::Value* term) {
    const ir::Node* const launch[] = {producer_of(term), last};
    return launch[0] && computes_halves(*launch[0], bindings) && can_follow(std::span(launch, 1), *last, bindings) &&
           can_follow(launch, node, bindings);
  });
}

namespace {

// Whether the kernel of a launch of integers or halves takes one step more: bounds, or a sum with a value of the same
// shape.
bool follows_narrow(std::span<const ir::Node* const> launch, const ir::Node& follower, const kernels::Step& step,
                    const Bindings& bindings) {
  const ir::Value& value = *launch.back()->output();
  if (is_narrow_sum(step) ? follower.input(0)->shape() != follower.input(1)->shape()
                          : follower.inputs().size() != 1 || follower.output()->type() != value.type())
    return false;
  std::vector<kernels::Step> steps;
  const ir::Value* main = launch.front()->output();
  for (const ir::Node* node : launch.subspan(1)) {
    steps.push_back(*step_on(*node, *main));
    main = node->output();
  }
  steps.push_back(step);
  return variant_for(*launch.front(), bindings, std::move(steps)) != nullptr;
}

// Whether the launch that writes the first operand of a function of two values may take it, where it is not turned.
bool may_follow_first(const ir::Node& follower, const kernels::Step& step, const Bindings& bindings) {
  if (step.main == 0 || !ops::function_from_name(step.function)) return false;
  const ir::Value* first = follower.input(0);
  if (!first->producer() || is_constant(*first) || first->uses().size() != 1 ||
      first->shape() != follower.output()->shape())
    return false;
  const kernels::Variant* variant = variant_for(*first->producer(), bindings);
  return variant && variant->takes_steps;
}

}  // namespace

bool can_follow(std::span<const ir::Node* const> launch, const ir::Node& follower, const Bindings& bindings) {
  const ir::Node& anchor = *launch.front();
  const ir::Value& value = *launch.back()->output();
  const std::optional<kernels::Step> step = follower.outputs().size() == 1 ? step_on(follower, value) : std::nullopt;
  // A number has no channels for slopes to broadcast to.
  if (!step || (value.rank() == 0 && follower.op().has(ops::Trait::channelwise))) return false;
  const std::vector<const kernels::Variant*> variants = kernels::variants_of(anchor.call());
  if (std::ranges::none_of(variants, &kernels::Variant::takes_steps)) return false;
  if (variants.front()->integers || is_narrow_float(anchor.output()->dtype()))
    return follows_narrow(launch, follower, *step, bindings);
  if (follower.output()->type() != ops::Type{kernels::result_type(*step, value.dtype()), value.shape()}) return false;
  if (value.dtype() != kernels::running_type(*step, value.dtype())) return false;
  const kernels::Variant* variant = variant_for(anchor, bindings);
  if (!variant || !variant->takes_steps || may_follow_first(follower, *step, bindings)) return false;
  const DType computed = anchor.output()->dtype();
  if (computed != DType::f32 && !(variant->tiles && computed == DType::boolean)) return false;
  size_t operand = 0;
  return std::ranges::all_of(follower.inputs(), [&](const ir::Value* input) {
    return !input || input == &value ||
           (input->dtype() == kernels::operand_type(*step, operand++) &&
            (operand_fits(follower, *input, value.shape(), channel_axis_of(*variant, value)) ||
             (variant->tiles && broadcasts_in_place(*input, value.shape()))));
  });
}

std::vector<Launch> launches_of(const ir::Graph& graph, bool variants) {
  const Bindings hints = graph.hints();
  std::vector<Launch> launches;
  for (const std::vector<const ir::Node*>& nodes : passes::chains_of(graph)) {
    const ir::Node* anchor = nodes.front();
    Launch launch{.anchor = anchor,
                  .variant = variants ? variant_for(*anchor, hints) : nullptr,
                  .inputs = {anchor->inputs().begin(), anchor->inputs().end()},
                  .outputs = {}};
    HETNN_ASSERT(launch.variant || nodes.size() == 1, ir::describe(*anchor), " has no kernel that takes steps");
    const ir::Value* main = anchor->output();
    for (size_t k = 1; k < nodes.size(); ++k) {
      const ir::Node& follower = *nodes[k];
      std::optional<kernels::Step> made = step_on(follower, *main);
      HETNN_ASSERT(made, ir::describe(follower), " cannot follow ", ir::describe(*anchor));
      LaunchStep step{&follower, std::move(*made)};
      for (const ir::Value* input : follower.inputs()) {
        if (!input || input == main) continue;
        if (step.operands++ == 0) step.operand = static_cast<int>(launch.inputs.size());
        if (input->shape() != main->shape() &&
            operand_fits(follower, *input, main->shape(), channel_axis_of(*launch.variant, *main)))
          launch.operand_shapes[launch.inputs.size()] =
              operand_shape(follower, *input, *main, channel_axis_of(*launch.variant, *main));
        launch.inputs.push_back(input);
      }
      launch.steps.push_back(std::move(step));
      main = follower.output();
    }
    launch.outputs.push_back(main);
    for (size_t k = 1; k < anchor->outputs().size(); ++k) launch.outputs.push_back(anchor->output(k));
    launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace hetnn::backends::cpu
