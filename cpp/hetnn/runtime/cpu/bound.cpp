// Commands for fixed sizes: kernels made for them, and what is told of them.
#include "hetnn/runtime/cpu/bound.h"

#include <algorithm>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/narrowed.h"
#include "hetnn/kernels/query/best.h"
#include "hetnn/kernels/query/refusals.h"
#include "hetnn/runtime/cpu/visit.h"

namespace hetnn::runtime {
namespace {

// What throws of a call in a damaged file.
auto at_fault_in(const ops::Call& call) {
  return [&call](std::string_view what) {
    throw InvalidModel(
        text(ops::describe(call), " ", what, ". The file is damaged or was altered; compile the model again."));
  };
}

}  // namespace

CpuBound::CpuBound(const program::Program& program, const program::CpuCode& code, const LoadedBodies& bodies,
                   const Sizes& sizes)
    : threads_(sizes.threads),
      code_(code),
      program_(program),
      types_(program::types_in_code(program, code)),
      bindings_(sizes.bindings),
      buffers_(sizes.buffers) {
  for (const int32_t id : code.in_blocks) blocks_.emplace(id, Block(buffers_[static_cast<size_t>(id)], code.blocks));
  for (const program::Command& command : code.commands) {
    const int64_t body = body_of(command);
    commands_.push_back(bound(command, body < 0 ? nullptr : bodies[static_cast<size_t>(body)], sizes));
    if (commands_.back().body && code.blocks > 1)
      at_fault_in(commands_.back().call->call())("repeats a body in blocks of a batch");
  }
  for (const BoundCommand& made : commands_) all_serial_ = all_serial_ && made.serial;
}

std::vector<int64_t> CpuBound::scratch_bytes() const {
  std::vector<int64_t> out;
  for (const BoundCommand& made : commands_) {
    out.push_back(0);
    // A visit gets as many threads as are idle.
    for (int threads = 1; made.kernel && threads <= (made.serial ? 1 : threads_); ++threads)
      out.back() = std::max(out.back(), made.kernel->scratch_bytes(threads));
  }
  return out;
}

std::unique_ptr<Visit> CpuBound::open(std::span<const int64_t> scratch) const {
  return std::make_unique<CpuVisit>(*this, scratch);
}

std::vector<CommandTime> CpuBound::described(const kernels::Machine& machine) const {
  std::vector<CommandTime> out;
  for (size_t k = 0; k < commands_.size(); ++k) out.push_back(described(k, machine));
  return out;
}

CommandTime CpuBound::described(size_t index, const kernels::Machine& machine) const {
  const BoundCommand& command = commands_[index];
  CommandTime out{.node = command.command.node,
                  .kernel = command.kernel ? std::string(command.variant->name)
                            : command.body ? std::string("body")
                                           : text("meaning of ", command.command.op->name)};
  const auto bound_call = call_of(command.command);
  const ops::Call& call = bound_call->call();
  const ops::OpDef& op = *call.op;
  ops::Work work;
  if (op.work) work = op.work(call);
  if (!op.work && op.has(ops::Trait::elementwise)) work.flops = elements(call.output().shape);
  // Sizes that values say are not known here.
  if (work.macs.is_static()) out.macs = static_cast<double>(work.macs.value());
  if (work.flops.is_static()) out.flops = static_cast<double>(work.flops.value());
  if (!command.kernel && !command.body) {
    const auto views = [&](const std::vector<int32_t>& ids) {
      std::vector<kernels::TensorView> made;
      for (const int32_t id : ids)
        if (id >= 0) made.push_back(buffer(id).view);
      return made;
    };
    out.refusals = kernels::refusals_of(call, views(command.command.inputs), views(command.command.outputs));
  }
  for (const auto* ids : {&command.command.inputs, &command.command.outputs}) {
    for (const int32_t id : *ids) {
      if (id < 0) continue;
      const BoundBuffer& each = buffer(id);
      out.bytes += static_cast<double>(each.view.packed ? each.size_bytes : each.view.elem_bytes());
    }
  }
  const kernels::Amounts amounts{.macs = out.macs, .flops = out.flops, .bytes = out.bytes};
  const auto blocks = static_cast<double>(code_.blocks);
  for (double* const each : {&out.macs, &out.flops, &out.bytes}) *each *= blocks;
  if (!command.kernel) return out;
  const Asked asked = asked_of(command.command, call, *command.variant);
  for (kernels::Ranked& row : kernels::ranked(kernels::variants_of(call), asked.call(), amounts, machine)) {
    // Operators that share a kernel have rows of one name.
    if (row.variant->name == command.variant->name) {
      out.predicted_us = blocks * row.predicted_us;
    } else {
      out.rivals.push_back({std::string(row.variant->name), blocks * row.predicted_us, row.refusal.value_or("")});
    }
  }
  return out;
}

int64_t CpuBound::block_bytes(int32_t id) const {
  const auto at = blocks_.find(id);
  return at == blocks_.end() ? 0 : at->second.bytes;
}

size_t CpuBound::end_of_stretch(size_t from) const {
  if (code_.blocks > 1) return steps();
  const auto runs_body = [](const BoundCommand& command) { return command.body != nullptr; };
  const auto begin = commands_.begin() + static_cast<ptrdiff_t>(from);
  if (runs_body(*begin)) return from + 1;
  return static_cast<size_t>(std::find_if(begin, commands_.end(), runs_body) - commands_.begin());
}

const BoundBuffer& CpuBound::buffer(int32_t id) const {
  const auto at = blocks_.find(id);
  return at == blocks_.end() ? buffers_[static_cast<size_t>(id)] : at->second.buffer;
}

std::unique_ptr<const ops::BoundCall> CpuBound::call_of(const program::Command& command) const {
  ops::Call call = program::call_of(command, types_);
  ops::complete(call);
  return std::make_unique<const ops::BoundCall>(call, bindings_);
}

Asked CpuBound::asked_of(const program::Command& command, const ops::Call& call,
                         const kernels::Variant& variant) const {
  const auto at_fault = at_fault_in(call);
  Asked out;
  std::vector<int> positions;  // among the kernel's inputs
  for (const int32_t id : command.inputs) {
    positions.push_back(id < 0 ? -1 : static_cast<int>(out.inputs.size()));
    if (id >= 0) out.inputs.push_back(buffer(id).view);
  }
  for (const int32_t id : command.outputs) out.outputs.push_back(buffer(id).view);
  out.steps = steps_of(command, call, positions);
  out.params = kernels::params_of(call);
  for (const auto& [name, value] : command.options) {
    if (out.params.has(name)) at_fault(text("has the option '", name, "', which is its attribute"));
  }
  out.params.set(command.options);
  if (code_.deterministic) out.params.set({{"deterministic", Dim(1)}});
  if (!out.outputs.empty() && !variant.tiles) out.outputs[0].dtype = call.output().dtype;
  return out;
}

std::vector<BufferView> CpuBound::views() const {
  std::vector<BufferView> out;
  // What holds a block lies in no buffer that holds them all, nor the other way round.
  const auto add = [&](const BufferView& view) {
    if (!blocks_.contains(view.buffer) && !blocks_.contains(view.of)) out.push_back(view);
  };
  for (const BoundCommand& c : commands_) {
    if (c.view) add({c.command.outputs[0], c.command.inputs[0], *c.view});
    for (const kernels::Part& part : c.parts)
      add({c.command.inputs[static_cast<size_t>(part.input)], c.command.outputs[0], part.offset_bytes});
  }
  return out;
}

std::vector<Overwrite> CpuBound::overwrites() const {
  std::vector<Overwrite> out;
  for (size_t c = 0; c < commands_.size(); ++c) {
    if (!commands_[c].kernel) continue;
    std::map<int32_t, bool> allowed;  // by buffer
    size_t position = 0;
    for (const int32_t id : commands_[c].command.inputs) {
      if (id < 0) continue;
      const bool allows = commands_[c].kernel->writes_over(position++);
      const auto [at, fresh] = allowed.emplace(id, allows);
      at->second = at->second && allows;
    }
    for (const auto& [id, allows] : allowed) {
      if (allows && !blocks_.contains(id) && !blocks_.contains(commands_[c].command.outputs[0]))
        out.push_back({c, commands_[c].command.outputs[0], id});
    }
  }
  return out;
}

size_t CpuBound::sure_from() const {
  // Behind them come commands of the next block.
  if (code_.blocks > 1) return kNoMoment;
  const auto last = std::find_if(commands_.rbegin(), commands_.rend(), [](const auto& c) { return !c.sure; });
  return static_cast<size_t>(commands_.rend() - last);
}

std::vector<kernels::Step> CpuBound::steps_of(const program::Command& command, const ops::Call& call,
                                              const std::vector<int>& positions) const {
  const auto at_fault = at_fault_in(call);
  std::vector<kernels::Step> steps;
  ops::Type running = call.output();
  for (const program::Step& step : command.steps) {
    ops::Call follower{.op = step.op, .inputs = {}, .outputs = {}, .attrs = step.attrs, .name = {}, .loc = {}};
    // Operands may lie in another shape; what they are is all that matters here.
    const auto operands = static_cast<size_t>(program::operand_count(step)), main = static_cast<size_t>(step.main);
    std::vector<ops::Type> others(operands, running);
    for (size_t k = 0; k < operands; ++k) {
      const ops::Type& type = types_[static_cast<size_t>(command.inputs[static_cast<size_t>(step.operand) + k])];
      others[k].dtype = type.dtype;
      others[k].quant = type.quant;
      follower.inputs.push_back({&others[k], nullptr});
    }
    follower.inputs.insert(follower.inputs.begin() + step.main, {&running, nullptr});
    ops::complete(follower);
    std::optional<kernels::Step> function = kernels::step_of(follower, main);
    if (!function) at_fault(text("has a step ", step.op->name, ", which is no elementwise function"));
    steps.push_back(std::move(*function));
    if (step.operand >= 0) steps.back().input = positions[static_cast<size_t>(step.operand)];
    running.dtype = kernels::result_type(steps.back(), running.dtype);
    if (steps.back().function == kernels::kSumOfI8) running = ops::infer_types(follower).front();
  }
  return steps;
}

BoundCommand CpuBound::bound(const program::Command& command, const std::shared_ptr<const LoadedProgram>& body,
                             const Sizes& sizes) const {
  std::vector<kernels::TensorView> inputs, outputs;
  std::vector<int64_t> packed;  // bytes, where an input is
  for (const int32_t id : command.inputs) {
    if (id < 0) continue;
    inputs.push_back(buffer(id).view);
    packed.push_back(buffer(id).size_bytes);
  }
  for (int32_t id : command.outputs) outputs.push_back(buffer(id).view);
  BoundCommand out{command, call_of(command), nullptr};
  const ops::Call& call = out.call->call();
  const auto at_fault = at_fault_in(call);
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Shape made = call.output(k).shape, planned(outputs[k].shape().begin(), outputs[k].shape().end());
    // A size that comes out of values is compared when it does.
    if (!is_static(made) || made == planned) continue;
    const std::string wrong = text("writes ", to_string(made), " into a buffer of ", to_string(planned));
    if (sizes.bindings.empty()) at_fault(wrong);
    std::string at;
    for (const auto& [symbol, size] : sizes.bindings) at += text(at.empty() ? "" : ", ", symbol, " = ", size);
    throw InvalidModel(text(ops::describe(call), " ", wrong, " where ", at,
                            ", sizes that the model does not hold for. Run it on other sizes; if it should hold for "
                            "these, the file is damaged: compile the model again."));
  }
  const auto is_plain = [&](const kernels::TensorView& view) {
    return (!view.packed || body) && view.layout == Layout::plain;
  };
  const bool all_plain = std::ranges::all_of(inputs, is_plain) && std::ranges::all_of(outputs, is_plain);
  if (command.variant.empty()) {
    if (!all_plain) at_fault("is computed by its meaning on memory that is not plain");
    if (!command.steps.empty()) at_fault("is computed by its meaning and has steps");
    if (body) out.body = std::make_unique<const LoopBody>(command, program_, body, sizes);
    return out;
  }
  const kernels::Variant* variant = kernels::find_kernel(command.variant);
  if (!variant) {
    throw Unsupported(text("the executable uses the kernel '", command.variant,
                           "', which this version of hetnn does not have. Compile the model again."));
  }
  const Asked asked = asked_of(command, call, *variant);
  const kernels::KernelCall kernel_call = asked.call();
  for (size_t k = 0; k < inputs.size(); ++k) {
    const bool weight = variant->is_weight && variant->is_weight(kernel_call, static_cast<int>(k));
    if (inputs[k].packed != weight && !(weight && variant->packer))
      at_fault(weight ? "reads a weight that is not packed" : "reads a packed weight");
  }
  const bool can = std::ranges::any_of(kernels::all_kernels(), [&](const kernels::Variant& each) {
    return each.name == command.variant && kernels::computes(each, *command.op);
  });
  if (!can) at_fault(text("names the kernel ", command.variant, ", which computes other operators"));
  // A file is made for the sizes of an example; at others a kernel may be better that reads the same bytes.
  if (!sizes.bindings.empty()) variant = &kernels::exchanged(*variant, kernel_call);
  out.variant = variant;
  try {
    const bool narrows = !outputs.empty() && outputs[0].dtype != asked.outputs[0].dtype;
    out.kernel = narrows ? kernels::make_narrowed(*variant, kernel_call, outputs[0])
                         : kernels::make_kernel(*variant, kernel_call);
  } catch (const Unsupported&) {
    // The kernel was chosen at an example's sizes; at those it does not serve, the operator's meaning does.
    if (sizes.bindings.empty() || !all_plain || !asked.steps.empty()) throw;
    return out;
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].packed) continue;
    const int64_t packed_bytes = variant->packed_bytes(kernel_call, static_cast<int>(k));
    if (packed[k] != packed_bytes)
      at_fault(text("reads a packed weight of ", packed[k], " bytes where ", packed_bytes, " are wanted"));
  }
  out.sure = !command.op->check && (variant->speed == "elementwise" || variant->speed == "move");
  out.serial = out.kernel->serial();
  out.is_empty = !command.op->check && std::ranges::all_of(outputs, [](const auto& view) { return view.elems() == 0; });
  out.view = out.kernel->view();
  out.parts = out.kernel->parts();
  out.call.reset();
  return out;
}

CpuBound::Block::Block(const BoundBuffer& whole, int64_t blocks) : buffer(whole) {
  kernels::TensorView& view = buffer.view;
  const kernels::TensorView all = view;
  buffer.shape[0] /= blocks;
  view.dims[0] /= blocks;
  buffer.size_bytes = view.span_bytes();
  // Of two of them the first ends where the second begins.
  kernels::TensorView two = view;
  two.dims[0] *= 2;
  bytes = two.span_bytes() - buffer.size_bytes;
  HETNN_ASSERT(blocks < 2 || bytes * (blocks - 1) + buffer.size_bytes == all.span_bytes(), "blocks do not meet");
}

}  // namespace hetnn::runtime
