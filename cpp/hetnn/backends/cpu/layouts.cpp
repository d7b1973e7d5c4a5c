// Where every value of a graph of launches lies: plain, with its channels last, how far its pixels are apart, or by the
// strides of what it is seen in.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "hetnn/backends/cpu/launches.h"
#include "hetnn/base/error.h"
#include "hetnn/base/strides.h"

namespace hetnn::backends::cpu {
namespace {

constexpr int64_t kVectorElems = 16;  // of f32 in the widest instruction set; files are the same for all

std::set<const ir::Value*> read_channels_last(const std::vector<Launch>& launches) {
  std::set<const ir::Value*> out;
  for (const Launch& launch : launches) {
    if (launch.layout_wish() == kernels::LayoutWish::channels_last)
      out.insert(launch.inputs.begin(), launch.inputs.end());
  }
  return out;
}

// The kernel of a launch whose values lie so; null where it reads or writes copies in another layout.
std::unique_ptr<kernels::Kernel> kernel_of(const Launch& launch, const ConcreteLaunch& concrete) {
  if (kernels::refusal_of(*launch.variant, concrete.call())) return nullptr;
  return kernels::make_kernel(*launch.variant, concrete.call());
}

// Whether plain memory, given another shape by the launch, lies channels last without gaps.
bool turns_channels(const Launch& launch, const Bindings& hints) {
  const ir::Value* output = launch.outputs[0];
  const Layouts trial = {{output, {.layout = Layout::nhwc, .pitch = output->shape()[1]}}};
  const std::unique_ptr<kernels::Kernel> kernel = kernel_of(launch, ConcreteLaunch(launch, trial, hints));
  return kernel && kernel->view();
}

// Which values only move from others, as kernels say. The pixels of a part are as far apart as those of the whole.
class Placement {
 public:
  Placement(const Layouts& fixed, const Bindings& hints, Layouts& layouts)
      : fixed_(fixed), hints_(hints), layouts_(layouts) {}

  // Inputs that are joined are written where the whole lies.
  void join(const Launch& launch) {
    const ir::Value* whole = launch.outputs[0];
    Layouts trial = of(launch);
    for (const ir::Value* input : launch.inputs)
      if (may_lie_in(input, whole)) trial[input].pitch = trial.at(whole).pitch;
    const ConcreteLaunch concrete(launch, trial, hints_);
    const std::unique_ptr<kernels::Kernel> kernel = kernel_of(launch, concrete);
    if (!kernel) return;
    for (const kernels::Part& part : kernel->parts()) {
      for (size_t k = 0; k < launch.inputs.size(); ++k)
        if (concrete.position(k) == part.input && may_lie_in(launch.inputs[k], whole)) lie_in(launch.inputs[k], whole);
    }
  }

  // What is cut out stays where it is.
  void cut(const Launch& launch) {
    const ir::Value *part = launch.outputs[0], *whole = launch.inputs[0];
    if (!whole || !layouts_.contains(whole) || !may_lie_in(part, whole)) return;
    Layouts trial = of(launch);
    trial[part].pitch = trial.at(whole).pitch;
    const ConcreteLaunch concrete(launch, trial, hints_);
    const std::unique_ptr<kernels::Kernel> kernel = kernel_of(launch, concrete);
    if (kernel && kernel->view()) lie_in(part, whole);
  }

 private:
  Layouts of(const Launch& launch) const {
    Layouts out;
    for (const auto* values : {&launch.inputs, &launch.outputs})
      for (const ir::Value* value : *values)
        if (const auto at = layouts_.find(value); at != layouts_.end()) out.insert(*at);
    return out;
  }
  // Of channels that are as many whatever the sizes.
  bool may_lie_in(const ir::Value* part, const ir::Value* whole) const {
    const auto at = layouts_.find(part);
    if (at == layouts_.end() || at->second.layout != Layout::nhwc || fixed_.contains(part) || parts_.contains(part))
      return false;
    const ValueLayout& there = layouts_.at(whole);
    const Dim& channels = part->shape()[1];
    return there.layout == Layout::nhwc && channels.is_static() && there.pitch.is_static() &&
           channels.value() <= there.pitch.value();
  }
  void lie_in(const ir::Value* part, const ir::Value* whole) {
    layouts_.at(part).pitch = layouts_.at(whole).pitch;
    parts_.insert(part);
  }

  const Layouts& fixed_;
  const Bindings& hints_;
  Layouts& layouts_;
  std::set<const ir::Value*> parts_;
};

// A whole may be part of another, whose layout must be known first: wholes are looked at from the last to the first.
void share_pitches(const std::vector<Launch>& launches, const Layouts& fixed, const Bindings& hints, Layouts& layouts) {
  Placement placement(fixed, hints, layouts);
  const auto moves_channels = [&](const Launch& launch) {
    return launch.variant && launch.anchor->op().has(ops::Trait::movement) && launch.outputs.size() == 1 &&
           !launch.inputs.empty() && layouts.at(launch.outputs[0]).layout == Layout::nhwc;
  };
  for (auto launch = launches.rbegin(); launch != launches.rend(); ++launch)
    if (moves_channels(*launch)) placement.join(*launch);
  for (const Launch& launch : launches)
    if (moves_channels(launch)) placement.cut(launch);
}

// Values that are only moved on their way to a launch that reads by strides, or from one that writes so: they are seen
// where they come from.
class Seen {
 public:
  Seen(const std::vector<Launch>& launches, const Layouts& fixed) {
    std::map<const ir::Value*, std::vector<const Launch*>> readers;
    for (const Launch& launch : launches)
      for (const ir::Value* input : launch.inputs) readers[input].push_back(&launch);
    for (auto launch = launches.rbegin(); launch != launches.rend(); ++launch) {
      if (!moves(*launch) || fixed.contains(launch->outputs[0])) continue;
      const std::vector<const Launch*>& of = readers[launch->outputs[0]];
      if (!of.empty() && std::ranges::all_of(of, [&](const Launch* each) { return reads(*each, launch->outputs[0]); }))
        moved_.insert(launch->outputs[0]);
    }
    for (const Launch& launch : launches) {
      if (!computes_by_strides(launch) || fixed.contains(launch.outputs[0])) continue;
      const std::vector<const Launch*>& of = readers[launch.outputs[0]];
      if (of.size() == 1 && moves(*of[0])) turned_[launch.outputs[0]] = of[0];
    }
  }

  // How the result of a launch that moves lies then; nullopt where it does not.
  std::optional<ValueLayout> result_of(const Launch& launch, const Layouts& layouts) const {
    if (!moves(launch) || !moved_.contains(launch.outputs[0])) return std::nullopt;
    const ir::Value& x = *launch.inputs[0];
    const auto at = layouts.find(&x);
    const bool strided = at != layouts.end() && at->second.layout == Layout::strided;
    if (at != layouts.end() && at->second.layout == Layout::nhwc) return std::nullopt;
    const Shape from = strided ? at->second.strides : plain_strides(std::span<const Dim>(x.shape()));
    const ops::Call& call = launch.anchor->call();
    std::optional<Shape> strides = call.op->seen(call, from);
    if (!strides || strides->empty()) return std::nullopt;
    // What is computed with lies side by side along its last axis.
    const bool last = ends_.contains(launch.outputs[0]);
    if (last && strides->back() != Dim(1)) return std::nullopt;
    return ValueLayout{.layout = Layout::strided, .pitch = 0, .strides = std::move(*strides)};
  }

  // The results of launches that write by strides, where that leaves a turn behind them nothing to do.
  void turn(Layouts& layouts) const {
    for (const auto& [y, launch] : turned_) {
      const ir::Value& to = *launch->outputs[0];
      if (const auto at = layouts.find(&to); at != layouts.end() && at->second.layout != Layout::plain) continue;
      std::optional<Shape> strides = behind(launch->anchor->call(), plain_strides(std::span<const Dim>(to.shape())));
      if (strides && strides->back() == Dim(1))
        layouts[y] = {.layout = Layout::strided, .pitch = 0, .strides = std::move(*strides)};
    }
  }

 private:
  static bool computes_by_strides(const Launch& launch) {
    return launch.variant && launch.layout_wish() == kernels::LayoutWish::strided;
  }
  static bool moves(const Launch& launch) {
    return launch.variant && launch.anchor->op().seen && launch.steps.empty() && launch.outputs.size() == 1 &&
           launch.inputs.size() == 1 && !is_constant(*launch.inputs[0]);
  }
  // The strides of an input whose axes a call only puts into another order, and leaves none of its elements out, by
  // those of the result.
  static std::optional<Shape> behind(const ops::Call& call, const Shape& result) {
    if (elements(call.input(0).shape) != elements(call.output().shape)) return std::nullopt;
    Shape marks;
    for (size_t k = 0; k < call.input(0).shape.size(); ++k) marks.push_back(Dim::symbol(text("axis", k)));
    const std::optional<Shape> seen = call.op->seen(call, marks);
    if (!seen || seen->size() != marks.size()) return std::nullopt;
    Shape out;
    for (const Dim& mark : marks) {
      const auto at = std::ranges::find(*seen, mark);
      if (at == seen->end()) return std::nullopt;
      out.push_back(result[static_cast<size_t>(at - seen->begin())]);
    }
    return out;
  }
  // Whether the launch reads the value by strides.
  bool reads(const Launch& launch, const ir::Value* value) {
    if (moves(launch)) return launch.inputs[0] == value && moved_.contains(launch.outputs[0]);
    if (!computes_by_strides(launch)) return false;
    for (size_t k = 0; k < launch.inputs.size(); ++k)
      if (launch.inputs[k] == value && (k >= 3 || launch.is_operand(k))) return false;
    ends_.insert(value);
    return true;
  }

  std::set<const ir::Value*> moved_, ends_;
  std::map<const ir::Value*, const Launch*> turned_;
};

}  // namespace

ValueLayout channels_last(const ir::Value& value) {
  Dim pitch = ceil_div(value.shape()[1], kVectorElems) * kVectorElems;
  if (pitch.is_static() && pitch.value() * dtype_bytes(value.dtype()) % 2048 == 0) pitch = pitch + kVectorElems;
  return {.layout = Layout::nhwc, .pitch = pitch};
}

ValueLayout turned_layout(const ir::Value& value) {
  return is_constant(value) ? ValueLayout{.layout = Layout::nhwc, .pitch = value.shape()[1]} : channels_last(value);
}

Layouts choose_layouts(const std::vector<Launch>& launches, const Layouts& fixed, const Bindings& hints) {
  using kernels::LayoutWish;
  Layouts out = fixed;
  const std::set<const ir::Value*> wanted = read_channels_last(launches);
  const Seen seen(launches, fixed);
  for (const Launch& launch : launches) {
    const LayoutWish wish = launch.layout_wish();
    if (std::optional<ValueLayout> layout = seen.result_of(launch, out)) {
      out.emplace(launch.outputs[0], std::move(*layout));
      continue;
    }
    const bool reads_channels_last =
        std::any_of(launch.inputs.begin(), launch.inputs.end(), [&](const ir::Value* input) {
          auto at = input ? out.find(input) : out.end();
          return at != out.end() && at->second.layout == Layout::nhwc;
        });
    for (const ir::Value* output : launch.outputs) {
      const bool follows = wish == LayoutWish::same || wish == LayoutWish::kept;
      const bool channels = ops::is_feature_map(output->type()) &&
                            (wish == LayoutWish::channels_last || (follows && reads_channels_last));
      const bool turned = wish == LayoutWish::turned && !reads_channels_last && wanted.contains(output) &&
                          ops::is_feature_map(output->type()) && turns_channels(launch, hints);
      out.emplace(output, channels ? channels_last(*output)
                          : turned ? ValueLayout{.layout = Layout::nhwc, .pitch = output->shape()[1]}
                                   : ValueLayout{});
    }
  }
  seen.turn(out);
  share_pitches(launches, fixed, hints, out);
  return out;
}

}  // namespace hetnn::backends::cpu
