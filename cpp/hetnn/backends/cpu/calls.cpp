// From fused groups of nodes to kernel calls over values, with a layout for every value.
#include "hetnn/backends/cpu/calls.h"

#include <algorithm>
#include <charconv>

#include "hetnn/base/error.h"

namespace hetnn::backends::cpu {
namespace {

constexpr int64_t kVectorElems = 16;  // of f32 in the widest instruction set; files are the same for all

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

// The axis that kernels call channels: of a matrix product the last one, else the second.
int channel_axis_of(const ir::Node& anchor, const ir::Value& output) {
  const bool last = anchor.op().kernel(anchor).layout == ops::KernelUse::Layout::plain || output.rank() < 2;
  return last ? output.rank() - 1 : 1;
}

// What an epilogue can take as an operand: the output's shape, one element, or a value a channel. The last is passed
// flat, which only a constant can be without a copy.
bool operand_fits(const ir::Node& follower, const ir::Value& operand, const Shape& output, int channel_axis) {
  if (operand.shape() == output || elements(operand.shape()) == Dim(1)) return true;
  if (follower.op().has(ops::Trait::channelwise)) return channel_axis == 1;
  if (!operand.producer() || !operand.producer()->is_constant() || operand.shape().size() > output.size()) return false;
  for (size_t k = 0; k < operand.shape().size(); ++k) {
    const size_t axis = output.size() - operand.shape().size() + k;
    if (operand.shape()[k] != Dim(1) && static_cast<int>(axis) != channel_axis) return false;
  }
  return true;
}

// The shape in which a step takes a constant: slopes flat, one value as one element, else all axes but the channels 1.
Shape operand_shape(const ir::Node& follower, const ir::Value& operand, const ir::Value& output, int channel_axis) {
  const Dim count = elements(operand.shape());
  if (count == Dim(1) || follower.op().has(ops::Trait::channelwise) || channel_axis == output.rank() - 1) return {count};
  Shape out(static_cast<size_t>(output.rank()), 1);
  out[static_cast<size_t>(channel_axis)] = count;
  return out;
}

}  // namespace

ValueLayout channels_last(const ir::Value& value) {
  Dim pitch = ceil_div(value.shape()[1], kVectorElems) * kVectorElems;
  if (pitch.is_static() && pitch.value() * dtype_bytes(value.dtype()) % 4096 == 0) pitch = pitch + kVectorElems;
  return {Layout::nhwc, pitch};
}

std::string step_text(const ir::Node& follower, const ir::Value& main, int operand) {
  std::string step = follower.op().kernel(follower).step;
  if (step.empty()) return {};
  const int at = main_input(follower, main);
  if (at < 0 || (at > 0 && !(at == 1 && follower.op().has(ops::Trait::commutative)))) return {};
  if (auto mark = step.find('%'); mark != std::string::npos) {
    size_t end = mark + 1;
    while (end < step.size() && std::isdigit(static_cast<unsigned char>(step[end]))) ++end;
    step.replace(mark, end - mark, "%" + std::to_string(operand));
  }
  return step;
}

bool can_follow(std::span<const ir::Node* const> launch, const ir::Node& follower) {
  const ir::Node& anchor = *launch.front();
  const ir::Value& value = *launch.back()->output();
  if (!anchor.op().kernel || !follower.op().kernel || !anchor.op().kernel(anchor).takes_steps) return false;
  if (follower.outputs().size() != 1 || value.dtype() != DType::f32) return false;
  if (follower.output()->type() != value.type() || step_text(follower, value, 0).empty()) return false;
  return std::all_of(follower.inputs().begin(), follower.inputs().end(), [&](const ir::Value* input) {
    return !input || input == &value ||
           (input->dtype() == DType::f32 &&
            operand_fits(follower, *input, value.shape(), channel_axis_of(anchor, value)));
  });
}

std::vector<Call> calls_of(const ir::Graph& graph) {
  std::map<int, std::vector<const ir::Node*>> groups;
  std::vector<int> order;  // by the last node of a group: only then are all operands of its steps written
  for (const ir::Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    groups[node->group].push_back(node);
    std::erase(order, node->group);
    order.push_back(node->group);
  }
  std::vector<Call> calls;
  for (int group : order) {
    const std::vector<const ir::Node*>& nodes = groups[group];
    const ir::Node* anchor = nodes.front();
    HETNN_ASSERT(anchor->op().kernel != nullptr, ir::describe(*anchor), " has no kernel");
    ops::KernelUse use = anchor->op().kernel(*anchor);
    Call call{.kernel = use.kernel, .params = std::move(use.params), .inputs = {}, .outputs = {}, .anchor = anchor};
    for (const ir::Value* input : anchor->inputs()) {
      if (input) call.inputs.push_back(input);
    }
    const ir::Value* main = anchor->output();
    std::string epilogue;
    for (size_t k = 1; k < nodes.size(); ++k) {
      const ir::Node& follower = *nodes[k];
      const std::string step = step_text(follower, *main, static_cast<int>(call.inputs.size()));
      HETNN_ASSERT(!step.empty(), ir::describe(follower), " cannot follow ", ir::describe(*anchor));
      for (const ir::Value* input : follower.inputs()) {
        if (!input || input == main || step.find('%') == std::string::npos) continue;
        if (input->type() != main->type())
          call.operand_shapes[call.inputs.size()] =
              operand_shape(follower, *input, *main, channel_axis_of(*anchor, *main));
        call.inputs.push_back(input);
      }
      epilogue += (epilogue.empty() ? "" : "; ") + step;
      main = follower.output();
    }
    if (!epilogue.empty()) call.params["epilogue"] = epilogue;
    call.outputs.push_back(main);
    for (size_t k = 1; k < anchor->outputs().size(); ++k) call.outputs.push_back(anchor->output(k));
    calls.push_back(std::move(call));
  }
  return calls;
}

Layouts choose_layouts(const std::vector<Call>& calls, const Layouts& fixed) {
  Layouts out = fixed;
  for (const Call& call : calls) {
    const ops::KernelUse::Layout wish = call.anchor->op().kernel(*call.anchor).layout;
    const bool reads_channels_last = std::any_of(call.inputs.begin(), call.inputs.end(), [&](const ir::Value* input) {
      auto at = out.find(input);
      return at != out.end() && at->second.layout == Layout::nhwc;
    });
    for (const ir::Value* output : call.outputs) {
      const bool feature_map = output->rank() == 4 && (wish == ops::KernelUse::Layout::channels_last ||
                                                       (wish == ops::KernelUse::Layout::same && reads_channels_last));
      out.emplace(output, feature_map ? channels_last(*output) : ValueLayout{});
    }
  }
  return out;
}

}  // namespace hetnn::backends::cpu
