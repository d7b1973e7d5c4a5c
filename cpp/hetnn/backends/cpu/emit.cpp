// Kernel calls as commands of a program: buffers, packed weights, layout copies.
#include "hetnn/backends/cpu/emit.h"

#include <algorithm>

#include "hetnn/backends/cpu/calls.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::backends::cpu {
namespace {

kernels::Params concrete(const std::map<std::string, ops::KernelUse::Param, std::less<>>& params,
                         const Bindings& bindings) {
  kernels::Params out;
  for (const auto& [name, value] : params) {
    if (auto* dim = std::get_if<Dim>(&value)) {
      out.set(name, dim->evaluate(bindings));
    } else if (auto* dims = std::get_if<std::vector<Dim>>(&value)) {
      out.set(name, evaluate(*dims, bindings));
    } else if (auto* real = std::get_if<double>(&value)) {
      out.set(name, *real);
    } else if (auto* reals = std::get_if<std::vector<double>>(&value)) {
      out.set(name, *reals);
    } else {
      out.set(name, std::get<std::string>(value));
    }
  }
  return out;
}

kernels::TensorView view_of(const ir::Value& value, const ValueLayout& layout, const Bindings& bindings) {
  const std::vector<int64_t> shape = evaluate(value.shape(), bindings);
  return layout.layout == Layout::nhwc
             ? kernels::TensorView::nhwc(value.dtype(), shape, layout.pitch.evaluate(bindings))
             : kernels::TensorView::plain(value.dtype(), shape);
}

const kernels::KernelFamily& family_of(std::string_view kernel) {
  const kernels::KernelFamily* family = kernels::find_kernel(kernel);
  HETNN_ASSERT(family != nullptr, "there is no kernel '", kernel, "'");
  return *family;
}

// A call's shapes under the graph's hints, for questions that do not depend on the symbols' values: which inputs are
// weights, and how they are packed.
struct ConcreteCall {
  std::vector<kernels::TensorView> inputs, outputs;
  kernels::Params params;
  kernels::KernelCall call() const { return {inputs, outputs, params}; }
};

ConcreteCall concrete_call(const Call& call, const Layouts& layouts, const Bindings& bindings) {
  ConcreteCall out;
  auto layout_of = [&](const ir::Value* value) {
    auto at = layouts.find(value);
    return at == layouts.end() ? ValueLayout{} : at->second;
  };
  for (const ir::Value* input : call.inputs) out.inputs.push_back(view_of(*input, layout_of(input), bindings));
  for (const ir::Value* output : call.outputs) out.outputs.push_back(view_of(*output, layout_of(output), bindings));
  out.params = concrete(call.params, bindings);
  return out;
}

class Emitter {
 public:
  Emitter(const ir::Graph& graph, Assembler& assembler, int tune_threads)
      : graph_(graph), assembler_(assembler), hints_(graph.hints()), tune_threads_(tune_threads) {}

  program::CpuCode run() {
    const std::vector<Call> calls = calls_of(graph_);
    Layouts fixed;
    auto fix = [&](const ir::Value* value) {
      const int32_t id = assembler_.boundary(value->name());
      buffers_[value] = id;
      fixed[value] = {assembler_.buffer(id).layout, assembler_.buffer(id).pitch};
    };
    for (const ir::Value* input : graph_.inputs()) fix(input);
    for (const ir::Value* output : graph_.outputs()) fix(output);
    layouts_ = choose_layouts(calls, fixed);
    for (const Call& call : calls) emit(call);
    return std::move(code_);
  }

 private:
  void emit(const Call& call) {
    const kernels::KernelFamily& family = family_of(call.kernel);
    ConcreteCall concrete = concrete_call(call, layouts_, hints_);
    program::Command command{.kernel = call.kernel,
                             .inputs = {},
                             .outputs = {},
                             .params = {call.params.begin(), call.params.end()},
                             .node = call.anchor->name()};
    // Variants whose packed weights differ are settled here, for the shapes under the hints.
    if (family.choose) {
      for (const auto& [name, value] : family.choose(concrete.call())) {
        concrete.params.set(name, value);
        command.params.emplace(name, std::get<std::string>(value));
      }
    }
    if (tune_threads_ > 0 && family.tune) {
      for (const auto& [name, value] : family.tune(concrete.call(), tune_threads_))
        command.params.insert_or_assign(name, Dim(std::get<int64_t>(value)));
    }
    const ops::KernelUse::Layout wish = call.anchor->op().kernel(*call.anchor).layout;
    const bool reads_plain = wish == ops::KernelUse::Layout::plain;
    const bool writes_plain = reads_plain || wish == ops::KernelUse::Layout::written_plain;
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      const ir::Value& input = *call.inputs[k];
      const bool weight = family.is_weight && family.is_weight(concrete.call(), static_cast<int>(k));
      if (weight) {
        command.inputs.push_back(packed(family, concrete, static_cast<int>(k), input));
      } else if (call.operand_shapes.contains(k) && input.producer() && input.producer()->is_constant()) {
        command.inputs.push_back(shaped_constant(input, call.operand_shapes.at(k)));
      } else {
        const int32_t id = buffer(input);
        command.inputs.push_back(reads_plain && assembler_.buffer(id).layout != Layout::plain ? plain_copy(input, id)
                                                                                              : id);
      }
    }
    for (const ir::Value* output : call.outputs) {
      auto at = buffers_.find(output);
      if (at == buffers_.end()) {
        const ValueLayout& layout = layouts_.at(output);
        at = buffers_
                 .emplace(output, assembler_.arena_buffer(output->name(), output->type(), layout.layout, layout.pitch))
                 .first;
      }
      command.outputs.push_back(at->second);
    }
    // A kernel that writes plain memory only goes through a copy where the value's buffer is fixed as nhwc.
    std::vector<program::Command> after;
    if (writes_plain) {
      for (size_t k = 0; k < command.outputs.size(); ++k) {
        if (assembler_.buffer(command.outputs[k]).layout == Layout::plain) continue;
        const ir::Value& output = *call.outputs[k];
        const int32_t plain = assembler_.arena_buffer(output.name() + ".plain", output.type(), Layout::plain, 0);
        after.push_back({.kernel = "copy",
                         .inputs = {plain},
                         .outputs = {command.outputs[k]},
                         .params = {},
                         .node = call.anchor->name()});
        command.outputs[k] = plain;
      }
    }
    code_.commands.push_back(std::move(command));
    for (program::Command& copy : after) code_.commands.push_back(std::move(copy));
  }

  int32_t buffer(const ir::Value& value) {
    if (auto at = buffers_.find(&value); at != buffers_.end()) return at->second;
    HETNN_ASSERT(value.producer() && value.producer()->is_constant(), "'", value.name(),
                 "' is read before it is written");
    const Tensor& tensor = value.producer()->tensor("value");
    const int32_t id =
        assembler_.constant_buffer(value.name(), value.type(), {tensor.data(), static_cast<size_t>(tensor.bytes())});
    buffers_.emplace(&value, id);
    return id;
  }

  int32_t shaped_constant(const ir::Value& value, const Shape& shape) {
    const Tensor& tensor = value.producer()->tensor("value");
    return assembler_.constant_buffer(value.name() + ".operand", {tensor.dtype(), shape},
                                      {tensor.data(), static_cast<size_t>(tensor.bytes())});
  }

  int32_t packed(const kernels::KernelFamily& family, const ConcreteCall& call, int input, const ir::Value& value) {
    const ir::Node* producer = value.producer();
    if (!producer || !producer->is_constant()) {
      throw Unsupported(text("'", value.name(), "' is a weight computed at run time; the kernel ", family.name,
                             " packs weights when compiling. Make it a parameter or a constant of the model."));
    }
    const Tensor& tensor = producer->tensor("value");
    const std::vector<std::byte> bytes =
        family.pack(call.call(), input, {tensor.data(), static_cast<size_t>(tensor.bytes())});
    return assembler_.constant_buffer(value.name() + ".packed", value.type(), bytes, true);
  }

  int32_t plain_copy(const ir::Value& value, int32_t from) {
    auto [at, fresh] = plain_copies_.try_emplace(from, 0);
    if (fresh) {
      at->second = assembler_.arena_buffer(value.name() + ".plain", value.type(), Layout::plain, 0);
      code_.commands.push_back(
          {.kernel = "copy", .inputs = {from}, .outputs = {at->second}, .params = {}, .node = value.name()});
    }
    return at->second;
  }

  const ir::Graph& graph_;
  Assembler& assembler_;
  const Bindings hints_;
  const int tune_threads_;
  Layouts layouts_;
  std::map<const ir::Value*, int32_t> buffers_;
  std::map<int32_t, int32_t> plain_copies_;
  program::CpuCode code_;
};

}  // namespace

program::CpuCode emit(const ir::Graph& graph, Assembler& assembler, int tune_threads) {
  return Emitter(graph, assembler, tune_threads).run();
}

void make_trial_kernel(const ir::Node& node, const Bindings& bindings) {
  ops::KernelUse use = node.op().kernel(node);
  Call call{.kernel = use.kernel, .params = std::move(use.params), .inputs = {}, .outputs = {}, .anchor = &node};
  for (const ir::Value* input : node.inputs()) {
    if (input) call.inputs.push_back(input);
  }
  for (const ir::Value* output : node.outputs()) call.outputs.push_back(output);
  ConcreteCall concrete = concrete_call(call, {}, bindings);
  const kernels::KernelFamily& family = family_of(use.kernel);
  for (size_t k = 0; k < concrete.inputs.size(); ++k) {
    if (!family.is_weight || !family.is_weight(concrete.call(), static_cast<int>(k))) continue;
    const ir::Node* producer = call.inputs[k]->producer();
    if (!producer || !producer->is_constant())
      throw Unsupported(text("weight '", call.inputs[k]->name(), "' is computed at run time"));
    concrete.inputs[k] = kernels::TensorView::of_weight(concrete.inputs[k].dtype, concrete.inputs[k].shape());
  }
  family.create(concrete.call());
}

}  // namespace hetnn::backends::cpu
