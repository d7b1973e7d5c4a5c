// Launches as commands of a program: buffers, packed weights, layout copies.
#include "hetnn/backends/cpu/emit.h"

#include <algorithm>
#include <optional>

#include "hetnn/backends/cpu/launches.h"
#include "hetnn/base/error.h"
#include "hetnn/base/interrupt.h"
#include "hetnn/base/progress.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/ir/body_graph.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/ops/control/loop.h"
#include "hetnn/ops/infer.h"

namespace hetnn::backends::cpu {
namespace {

class Emitter {
 public:
  Emitter(const ir::Graph& graph, Assembler& assembler, const EmitOptions& options)
      : graph_(graph), assembler_(assembler), hints_(graph.hints()), options_(options) {}

  program::CpuCode run() {
    const std::vector<Launch> launches = launches_of(graph_, options_.variants);
    Layouts fixed;
    auto fix = [&](const ir::Value* value) {
      const int32_t id = assembler_.boundary(value->name());
      buffers_[value] = id;
      const program::Buffer& buffer = assembler_.buffer(id);
      fixed[value] = {buffer.layout, buffer.pitch};
      if (buffer.shape == value->shape()) return;
      code_.blocks = buffer.shape[0].value() / value->shape()[0].value();
      code_.in_blocks.push_back(id);
    };
    for (const ir::Value* input : graph_.inputs()) fix(input);
    for (const ir::Value* output : graph_.outputs()) fix(output);
    layouts_ = choose_layouts(launches, fixed, hints_);
    std::map<const ir::Value*, size_t> last;
    for (size_t k = 0; k < launches.size(); ++k) {
      for (const ir::Value* input : launches[k].inputs) last[input] = k;
    }
    for (size_t k = 0; k < launches.size(); ++k) {
      check_interrupt();
      announce_parts(k, launches.size());
      emit(launches[k]);
      for (const ir::Value* input : launches[k].inputs) {
        if (options_.spent && input && is_constant(*input) && last.at(input) == k) options_.spent(*input);
      }
    }
    return std::move(code_);
  }

 private:
  void emit(const Launch& launch) {
    const kernels::Variant* variant = launch.variant;
    std::optional<ConcreteLaunch> concrete;
    if (variant) {
      concrete.emplace(launch, layouts_, hints_);
      concrete->params.set({{"deterministic", Dim(options_.deterministic ? 1 : 0)}});
      variant = settled(launch, *concrete, options_.machine);
      HETNN_ASSERT(variant, launch.variant->name, " does not serve ", ir::describe(*launch.anchor),
                   " as it lies: ", kernels::refusal_of(*launch.variant, concrete->call()).value_or(""));
    }
    const ops::Call& call = launch.anchor->call();
    program::Command command{.op = call.op,
                             .attrs = call.attrs,
                             .inputs = {},
                             .outputs = {},
                             .steps = {},
                             .variant = std::string(variant ? variant->name : ""),
                             .options = {},
                             .node = call.name};
    for (const LaunchStep& step : launch.steps) {
      command.steps.push_back({&step.node->op(), step.node->attrs(), step.operand, step.step.main});
      // The running value comes first in a sum, wherever it stands in the node.
      if (kernels::is_sum(step.step)) command.steps.back().attrs["coefficients"] = step.step.values;
    }
    if (variant && variant->tune && options_.tune_threads > 0) {
      command.options.merge(variant->tune(concrete->call(), options_.tune_threads));
    }
    if (variant && options_.tune_threads > 0)
      command.options.merge(kernels::tune_sums(concrete->call(), options_.tune_threads));
    const bool reads_plain =
        launch.layout_wish() == kernels::LayoutWish::plain || launch.layout_wish() == kernels::LayoutWish::strided;
    const bool writes_plain = reads_plain || launch.layout_wish() == kernels::LayoutWish::written_plain;
    const bool keeps = launch.layout_wish() == kernels::LayoutWish::kept;
    const Layout written = keeps ? concrete->inputs[0].layout : Layout::plain;
    for (size_t k = 0; k < launch.inputs.size(); ++k) {
      if (!launch.inputs[k]) {
        command.inputs.push_back(-1);
        continue;
      }
      const ir::Value& input = *launch.inputs[k];
      if (has_body(*launch.anchor) && ir::is_constant_of_body(*launch.anchor, k)) {
        command.inputs.push_back(assembler_.constant_buffer(input.name(), input.type(), {}, true));
      } else if (variant && variant->is_weight && variant->is_weight(concrete->call(), concrete->position(k))) {
        command.inputs.push_back(is_constant(input) ? packed(*variant, *concrete, concrete->position(k), input)
                                                    : lying(input, false, true));
      } else if (launch.operand_shapes.contains(k) && is_constant(input)) {
        command.inputs.push_back(shaped_constant(input, launch.operand_shapes.at(k)));
      } else {
        // Where one layout only is written, what a step reads lies so, too.
        const bool beside =
            (keeps || writes_plain) && launch.is_operand(k) && input.shape() == launch.outputs[0]->shape();
        const bool turned =
            concrete && concrete->inputs[static_cast<size_t>(concrete->position(k))].layout == Layout::nhwc;
        command.inputs.push_back(
            lying(input, beside ? written == Layout::nhwc : turned, beside ? written == Layout::plain : reads_plain));
      }
    }
    for (const ir::Value* output : launch.outputs) {
      auto at = buffers_.find(output);
      if (at == buffers_.end()) {
        const ValueLayout& layout = layouts_.at(output);
        at = buffers_
                 .emplace(output, assembler_.arena_buffer(output->name(), output->type(), layout.layout, layout.pitch,
                                                          layout.strides))
                 .first;
      }
      command.outputs.push_back(at->second);
    }
    // What writes one layout only goes through a copy where the value's buffer is fixed with the other.
    std::vector<program::Command> after;
    if (writes_plain || keeps) {
      for (size_t k = 0; k < command.outputs.size(); ++k) {
        const Layout there = assembler_.buffer(command.outputs[k]).layout;
        if (there == written || there == Layout::strided) continue;
        const ir::Value& output = *launch.outputs[k];
        const ValueLayout layout = written == Layout::nhwc ? channels_last(output) : ValueLayout{};
        const int32_t own = assembler_.arena_buffer(output.name() + ".own", output.type(), layout.layout, layout.pitch);
        after.push_back(copy(own, command.outputs[k], call.name));
        command.outputs[k] = own;
      }
    }
    code_.commands.push_back(std::move(command));
    for (program::Command& made : after) code_.commands.push_back(std::move(made));
  }

  // Whether what it repeats is a program, which has the constants that it reads.
  static bool has_body(const ir::Node& node) {
    return ops::is_loop(node.call()) && ops::fixed_integer(node.call(), "program") >= 0;
  }

  // Between layouts only a kernel copies: a meaning reads and writes plain memory.
  static program::Command copy(int32_t from, int32_t to, const std::string& node) {
    static const ops::OpDef& identity = ops::OpTable::global().get(ops::kIdentity);
    return {.op = &identity,
            .attrs = {},
            .inputs = {from},
            .outputs = {to},
            .steps = {},
            .variant = "copy",
            .options = {},
            .node = node};
  }

  int32_t buffer(const ir::Value& value) {
    if (auto at = buffers_.find(&value); at != buffers_.end()) return at->second;
    HETNN_ASSERT(is_constant(value), "'", value.name(), "' is read before it is written");
    const Tensor& tensor = value.producer()->tensor("value");
    const int32_t id = assembler_.constant_buffer(value.name(), value.type(), program::Blob(tensor));
    buffers_.emplace(&value, id);
    return id;
  }

  int32_t shaped_constant(const ir::Value& value, const Shape& shape) {
    const Tensor& tensor = value.producer()->tensor("value");
    return assembler_.constant_buffer(value.name() + ".operand", {tensor.dtype(), shape}, program::Blob(tensor));
  }

  int32_t packed(const kernels::Variant& variant, const ConcreteLaunch& launch, int input, const ir::Value& value) {
    const Tensor& tensor = value.producer()->tensor("value");
    program::Blob bytes(variant.pack(launch.call(), input, tensor.span()));
    return assembler_.constant_buffer(value.name() + ".packed", value.type(), std::move(bytes), true);
  }

  int32_t plain_copy(const ir::Value& value, int32_t from) {
    auto [at, fresh] = plain_copies_.try_emplace(from, 0);
    if (fresh) {
      at->second = assembler_.arena_buffer(value.name() + ".plain", value.type(), Layout::plain, 0);
      code_.commands.push_back(copy(from, at->second, value.name()));
    }
    return at->second;
  }

  // The buffer of a value as a launch reads it: with its channels last, plain, or as it lies.
  int32_t lying(const ir::Value& value, bool turned, bool plain) {
    if (turned && is_constant(value)) return turned_constant(value);
    const int32_t id = buffer(value);
    const bool lies_plain = assembler_.buffer(id).layout == Layout::plain;
    if (turned && lies_plain) return turned_copy(value, id);
    return plain && assembler_.buffer(id).layout == Layout::nhwc ? plain_copy(value, id) : id;
  }

  int32_t turned_copy(const ir::Value& value, int32_t from) {
    auto [at, fresh] = turned_.try_emplace(&value, 0);
    if (fresh) {
      const ValueLayout turned = turned_layout(value);
      at->second = assembler_.arena_buffer(value.name() + ".turned", value.type(), turned.layout, turned.pitch);
      code_.commands.push_back(copy(from, at->second, value.name()));
    }
    return at->second;
  }

  int32_t turned_constant(const ir::Value& value) {
    auto [at, fresh] = turned_.try_emplace(&value, 0);
    if (fresh) at->second = assembler_.turned_constant(value.name() + ".turned", value.type(), turned_values(value));
    return at->second;
  }

  static program::Blob turned_values(const ir::Value& value) {
    const Tensor& tensor = value.producer()->tensor("value");
    return visit_width(tensor.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto* from = reinterpret_cast<const T*>(tensor.data());
      const std::vector<int64_t> shape = evaluate(value.shape(), {});
      const auto batch = static_cast<size_t>(shape[0]), channels = static_cast<size_t>(shape[1]);
      std::vector<T> to(static_cast<size_t>(tensor.elems()));
      const size_t pixels = to.empty() ? 0 : to.size() / (batch * channels);
      for (size_t n = 0; n < batch; ++n)
        for (size_t c = 0; c < channels; ++c)
          for (size_t p = 0; p < pixels; ++p)
            to[(n * pixels + p) * channels + c] = from[(n * channels + c) * pixels + p];
      return program::Blob(std::move(to));
    });
  }

  const ir::Graph& graph_;
  Assembler& assembler_;
  const Bindings hints_;
  const EmitOptions options_;
  Layouts layouts_;
  std::map<const ir::Value*, int32_t> buffers_;
  std::map<int32_t, int32_t> plain_copies_;
  std::map<const ir::Value*, int32_t> turned_;
  program::CpuCode code_;
};

}  // namespace

program::CpuCode emit(const ir::Graph& graph, Assembler& assembler, const EmitOptions& options) {
  return Emitter(graph, assembler, options).run();
}

}  // namespace hetnn::backends::cpu
