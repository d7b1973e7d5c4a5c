// Where every value of a graph of launches lies: plain or with its channels last, and how far its pixels are apart.
#include <algorithm>
#include <memory>
#include <set>

#include "hetnn/backends/cpu/launches.h"

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
  const Layouts trial = {{output, {Layout::nhwc, output->shape()[1]}}};
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

}  // namespace

ValueLayout channels_last(const ir::Value& value) {
  Dim pitch = ceil_div(value.shape()[1], kVectorElems) * kVectorElems;
  if (pitch.is_static() && pitch.value() * dtype_bytes(value.dtype()) % 4096 == 0) pitch = pitch + kVectorElems;
  return {Layout::nhwc, pitch};
}

ValueLayout turned_layout(const ir::Value& value) {
  return is_constant(value) ? ValueLayout{Layout::nhwc, value.shape()[1]} : channels_last(value);
}

Layouts choose_layouts(const std::vector<Launch>& launches, const Layouts& fixed, const Bindings& hints) {
  using kernels::LayoutWish;
  Layouts out = fixed;
  const std::set<const ir::Value*> wanted = read_channels_last(launches);
  for (const Launch& launch : launches) {
    const LayoutWish wish = launch.layout_wish();
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
                          : turned ? ValueLayout{Layout::nhwc, output->shape()[1]}
                                   : ValueLayout{});
    }
  }
  share_pitches(launches, fixed, hints, out);
  return out;
}

}  // namespace hetnn::backends::cpu
