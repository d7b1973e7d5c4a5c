// Runs the general processor's code: calls one after another, in one parallel region a visit.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "hetnn/base/denormals.h"
#include "hetnn/base/error.h"
#include "hetnn/base/parallel.h"
#include "hetnn/base/progress.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/narrowed.h"
#include "hetnn/kernels/query/best.h"
#include "hetnn/kernels/query/refusals.h"
#include "hetnn/kernels/refusal.h"
#include "hetnn/ops/sizes.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/runtime/executor.h"
#include "hetnn/runtime/loop_body.h"

namespace hetnn::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kNever = std::numeric_limits<int>::max();

double us(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

// A command as its kernel is asked. The first output is of the type that the kernel writes, whatever the steps make of
// it.
struct Asked {
  std::vector<kernels::TensorView> inputs, outputs;
  kernels::Params params;
  std::vector<kernels::Step> steps;
  kernels::KernelCall call() const { return {inputs, outputs, params, steps}; }
};

// A command for fixed sizes: a kernel, or the call whose meaning is run.
struct BoundCommand {
  const program::Command& command;
  std::unique_ptr<const ops::BoundCall> call;     // null where a kernel computes it, which has all that it needs
  std::unique_ptr<const kernels::Kernel> kernel;  // null: the meaning computes it
  const kernels::Variant* variant = nullptr;      // the kernel's
  std::unique_ptr<const LoopBody> body = {};      // of a loop that was compiled
  std::optional<int64_t> view = {};               // the kernel's
  std::vector<kernels::Part> parts = {};          // the kernel's
  bool serial = true;
  bool sure = false;      // elementwise work and movements that take all values
  bool is_empty = false;  // nothing to write, and nothing to check
};

// A meaning's results go where the program wants them. Sizes that come out of values are told.
class InPlace final : public ops::FoundResults {
 public:
  InPlace(const BoundCommand& command, const std::vector<std::byte*>& outputs, const program::Program& program,
          FoundSizes* found)
      : command_(command), outputs_(outputs), program_(program), found_(found) {}
  void define(std::string_view symbol, int64_t value) override {
    ops::check_range(command_.call->call(), *std::ranges::find(program_.symbols, symbol, &Symbol::name), value);
    found_->define(symbol, value);
  }
  std::byte* allocate(size_t index, DType, std::span<const int64_t> shape) override {
    const Shape& planned = command_.call->call().output(index).shape;
    if (!is_static(planned)) return found_->allocate(command_.command.outputs[index], shape);
    const Shape made(shape.begin(), shape.end());
    HETNN_ASSERT(made == planned, ops::describe(command_.call->call()), " writes ", to_string(made),
                 " where it infers ", to_string(planned));
    return outputs_[index];
  }

 private:
  const BoundCommand& command_;
  const std::vector<std::byte*>& outputs_;
  const program::Program& program_;
  FoundSizes* const found_;  // null where the subprogram defines no symbols
};

class CpuBound;

class CpuVisit final : public Visit {
 public:
  CpuVisit(const CpuBound& bound, std::span<const int64_t> scratch);
  void upload(Addresses addresses) override;
  void start(const Launch& launch, Event& done) override;
  void download(Addresses) override {}

 private:
  // Of one step, a command of a block. Kernels take what is there, meanings every input.
  struct Pointers {
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    std::vector<ops::View> views;
  };
  template <typename Body>
  void guarded(const Body& body);
  bool lies_there(size_t index) const;
  void run_alone(size_t index, const Launch& launch);
  void tell_refused(size_t index);
  // Steps [from, to) of a visit that began at `begin`.
  struct Stretch {
    size_t from, to;
    Clock::time_point begin;
  };
  void run_share(int thread, SpinBarrier& barrier, const Stretch& stretch, const Launch& launch);

  const BoundCommand& command_of(size_t step) const;
  int64_t scratch_of(size_t step) const;
  void join_blocks(std::vector<CommandTime>& times);

  const CpuBound& bound_;
  const std::span<const int64_t> scratch_;  // in the arena, of every command
  std::vector<Pointers> pointers_;          // of every step
  // Which of them are whose.
  template <typename Pointer>
  struct Place {
    int32_t buffer;
    int64_t offset_bytes;
    Pointer* at;
  };
  std::vector<Place<const std::byte*>> read_;
  std::vector<Place<std::byte*>> written_;
  std::vector<double> thread_us_;  // of a visit whose commands are timed: [step][thread]
  FoundSizes* found_ = nullptr;    // of the visit under way
  std::exception_ptr failure_;     // of a meaning or a check
  std::atomic<bool> refused_;      // by a kernel of the visit under way
  std::atomic<int> last_barrier_;  // that the threads meet at, once the visit is to stop
};

// What throws of a call in a damaged file.
auto at_fault_in(const ops::Call& call) {
  return [&call](std::string_view what) {
    throw InvalidModel(
        text(ops::describe(call), " ", what, ". The file is damaged or was altered; compile the model again."));
  };
}

class CpuBound final : public BoundCode {
 public:
  CpuBound(const program::Program& program, const program::CpuCode& code, const LoadedBodies& bodies,
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

  std::vector<int64_t> scratch_bytes() const override {
    std::vector<int64_t> out;
    for (const BoundCommand& made : commands_) {
      out.push_back(0);
      // A visit gets as many threads as are idle.
      for (int threads = 1; made.kernel && threads <= (made.serial ? 1 : threads_); ++threads)
        out.back() = std::max(out.back(), made.kernel->scratch_bytes(threads));
    }
    return out;
  }
  std::unique_ptr<Visit> open(std::span<const int64_t> scratch) const override {
    return std::make_unique<CpuVisit>(*this, scratch);
  }
  const std::vector<BoundCommand>& commands() const { return commands_; }
  std::vector<CommandTime> described() const override {
    std::vector<CommandTime> out;
    for (size_t k = 0; k < commands_.size(); ++k) out.push_back(described(k));
    return out;
  }
  // What is told of a command besides its times: behind a visit, so that no command waits for it.
  CommandTime described(size_t index) const {
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
        // Between the elements of what is only seen there lie those of others.
        const kernels::TensorView& view = buffer(id).view;
        const bool seen = view.layout == Layout::strided;
        out.bytes += static_cast<double>(seen ? view.elems() * dtype_bytes(view.dtype) : buffer(id).size_bytes);
      }
    }
    const kernels::Amounts amounts{.macs = out.macs, .flops = out.flops, .bytes = out.bytes};
    const auto blocks = static_cast<double>(code_.blocks);
    for (double* const each : {&out.macs, &out.flops, &out.bytes}) *each *= blocks;
    if (!command.kernel) return out;
    const Asked asked = asked_of(command.command, call, *command.variant);
    for (kernels::Ranked& row : kernels::ranked(kernels::variants_of(call), asked.call(), amounts)) {
      if (row.variant == command.variant) {
        out.predicted_us = blocks * row.predicted_us;
      } else {
        out.rivals.push_back({std::string(row.variant->name), blocks * row.predicted_us, row.refusal.value_or("")});
      }
    }
    return out;
  }
  // Commands are run in steps: all of them for the first block, then for the next.
  size_t steps() const { return commands_.size() * static_cast<size_t>(code_.blocks); }
  // From one block of a buffer to the next.
  int64_t block_bytes(int32_t id) const {
    const auto at = blocks_.find(id);
    return at == blocks_.end() ? 0 : at->second.bytes;
  }
  // A body uses the threads itself, so that it runs by itself.
  size_t end_of_stretch(size_t from) const {
    if (code_.blocks > 1) return steps();
    const auto runs_body = [](const BoundCommand& command) { return command.body != nullptr; };
    const auto begin = commands_.begin() + static_cast<ptrdiff_t>(from);
    if (runs_body(*begin)) return from + 1;
    return static_cast<size_t>(std::find_if(begin, commands_.end(), runs_body) - commands_.begin());
  }
  const BoundBuffer& buffer(int32_t id) const {
    const auto at = blocks_.find(id);
    return at == blocks_.end() ? buffers_[static_cast<size_t>(id)] : at->second.buffer;
  }
  // The command as a call, for what is seldom asked.
  std::unique_ptr<const ops::BoundCall> call_of(const program::Command& command) const {
    ops::Call call = program::call_of(command, types_);
    ops::complete(call);
    return std::make_unique<const ops::BoundCall>(call, bindings_);
  }
  // What the command's kernel is asked for. Steps may leave the result in another type than the kernel writes.
  Asked asked_of(const program::Command& command, const ops::Call& call, const kernels::Variant& variant) const {
    const auto at_fault = at_fault_in(call);
    Asked out;
    std::vector<int> positions;  // among the kernel's inputs
    for (const int32_t id : command.inputs) {
      positions.push_back(id < 0 ? -1 : static_cast<int>(out.inputs.size()));
      if (id >= 0) out.inputs.push_back(buffer(id).view);
    }
    for (const int32_t id : command.outputs) out.outputs.push_back(buffer(id).view);
    out.steps = steps_of(command, call, positions, at_fault);
    out.params = kernels::params_of(call);
    for (const auto& [name, value] : command.options) {
      if (out.params.has(name)) at_fault(text("has the option '", name, "', which is its attribute"));
    }
    out.params.set(command.options);
    if (code_.deterministic) out.params.set({{"deterministic", Dim(1)}});
    if (!out.outputs.empty() && !variant.tiles) out.outputs[0].dtype = call.output().dtype;
    return out;
  }
  std::vector<BufferView> views() const override {
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
  std::vector<Overwrite> overwrites() const override {
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
  size_t sure_from() const override {
    const auto last = std::find_if(commands_.rbegin(), commands_.rend(), [](const auto& c) { return !c.sure; });
    return static_cast<size_t>(commands_.rend() - last);
  }
  int threads() const { return all_serial_ ? 1 : threads_; }
  bool keep_denormals() const { return code_.keep_denormals; }
  const program::Program& program() const { return program_; }

 private:
  // Elementwise steps on a call's result. `at_fault` throws.
  template <typename AtFault>
  std::vector<kernels::Step> steps_of(const program::Command& command, const ops::Call& call,
                                      const std::vector<int>& positions, const AtFault& at_fault) const {
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

  BoundCommand bound(const program::Command& command, const std::shared_ptr<const LoadedProgram>& body,
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
    out.is_empty =
        !command.op->check && std::ranges::all_of(outputs, [](const auto& view) { return view.elems() == 0; });
    out.view = out.kernel->view();
    out.parts = out.kernel->parts();
    out.call.reset();
    return out;
  }

  // A block of a buffer that holds them all, and the distance from one to the next.
  struct Block {
    Block(const BoundBuffer& whole, int64_t blocks) : buffer(whole) {
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
    BoundBuffer buffer;
    int64_t bytes;
  };

  const int threads_;
  const program::CpuCode& code_;
  const program::Program& program_;
  const std::vector<ops::Type> types_;  // of the program's buffers, as commands have them
  const Bindings bindings_;
  const std::vector<BoundBuffer>& buffers_;
  std::map<int32_t, Block> blocks_;
  bool all_serial_ = true;
  std::vector<BoundCommand> commands_;
};

CpuVisit::CpuVisit(const CpuBound& bound, std::span<const int64_t> scratch)
    : bound_(bound), scratch_(scratch), pointers_(bound.steps()) {
  for (size_t step = 0; step < pointers_.size(); ++step) {
    const BoundCommand& bound_command = command_of(step);
    const program::Command& command = bound_command.command;
    const auto block = static_cast<int64_t>(step / bound.commands().size());
    const auto offset = [&](int32_t id) { return block * bound.block_bytes(id); };
    Pointers& made = pointers_[step];
    made.outputs.resize(command.outputs.size());
    for (size_t k = 0; k < command.outputs.size(); ++k)
      written_.push_back({command.outputs[k], offset(command.outputs[k]), &made.outputs[k]});
    made.inputs.resize(static_cast<size_t>(std::ranges::count_if(command.inputs, [](int32_t id) { return id >= 0; })));
    if (!bound_command.kernel || command.op->check) made.views.resize(command.inputs.size());
    size_t present = 0;
    for (size_t k = 0; k < command.inputs.size(); ++k) {
      const int32_t id = command.inputs[k];
      if (id < 0) continue;
      read_.push_back({id, offset(id), &made.inputs[present++]});
      if (made.views.empty()) continue;
      made.views[k] = ops::View(bound.buffer(id).view.dtype, bound.buffer(id).shape, nullptr);
      read_.push_back({id, offset(id), &made.views[k].data});
    }
  }
}

void CpuVisit::upload(Addresses addresses) {
  const auto place = [&](const auto& each) {
    std::byte* const begin = addresses[static_cast<size_t>(each.buffer)];
    *each.at = begin ? begin + each.offset_bytes : nullptr;
  };
  std::ranges::for_each(read_, place);
  std::ranges::for_each(written_, place);
}

void CpuVisit::start(const Launch& launch, Event& done) {
  found_ = launch.found;
  last_barrier_.store(kNever, std::memory_order_relaxed);
  refused_.store(false, std::memory_order_relaxed);
  const auto begin = launch.commands ? Clock::now() : Clock::time_point();
  const auto threads = static_cast<size_t>(bound_.threads());
  if (launch.commands) thread_us_.assign(pointers_.size() * threads, 0);
  for (size_t from = 0, to = 0; from < pointers_.size(); from = to) {
    to = bound_.end_of_stretch(from);
    parallel_region_up_to(command_of(from).body ? 1 : bound_.threads(), [&](int thread, SpinBarrier& barrier) {
      run_share(thread, barrier, {from, to, begin}, launch);
    });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    if (last_barrier_.load(std::memory_order_relaxed) != kNever) launch.stop->check();
  }
  for (size_t k = 0; launch.commands && k < pointers_.size(); ++k) {
    const auto first = thread_us_.begin() + static_cast<std::ptrdiff_t>(k * threads);
    CommandTime& time = (*launch.commands)[k];
    time.thread_us.assign(first, first + static_cast<std::ptrdiff_t>(threads));
  }
  if (launch.commands) join_blocks(*launch.commands);
  done.set();
}

// The other threads wait at barriers, so an error is kept until all are through.
template <typename Body>
void CpuVisit::guarded(const Body& body) {
  try {
    if (!failure_) body();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

const BoundCommand& CpuVisit::command_of(size_t step) const {
  return bound_.commands()[step % bound_.commands().size()];
}
int64_t CpuVisit::scratch_of(size_t step) const { return scratch_[step % bound_.commands().size()]; }

// What is told of commands, each for all blocks.
void CpuVisit::join_blocks(std::vector<CommandTime>& times) {
  const size_t count = bound_.commands().size();
  for (size_t step = count; step < times.size(); ++step) {
    CommandTime& all = times[step % count];
    all.wall_us += times[step].wall_us;
    std::ranges::transform(all.thread_us, times[step].thread_us, all.thread_us.begin(), std::plus());
  }
  times.resize(std::min(times.size(), count));
  for (size_t k = 0; k < times.size(); ++k) {
    CommandTime told = bound_.described(k);
    told.start_us = times[k].start_us;
    told.wall_us = times[k].wall_us;
    told.thread_us = std::move(times[k].thread_us);
    if (lies_there(k)) told.kernel = "view";
    times[k] = std::move(told);
  }
}

// Whether a view was placed where it would be copied from, or all parts where they would be copied to.
bool CpuVisit::lies_there(size_t index) const {
  const std::optional<int64_t>& view = command_of(index).view;
  const Pointers& pointers = pointers_[index];
  if (view) return pointers.inputs[0] + *view == pointers.outputs[0];
  const std::vector<kernels::Part>& parts = command_of(index).parts;
  return !parts.empty() && parts.size() == pointers.inputs.size() &&
         std::ranges::all_of(parts, [&](const kernels::Part& part) {
           return pointers.inputs[static_cast<size_t>(part.input)] == pointers.outputs[0] + part.offset_bytes;
         });
}

// A kernel that refused has a check that says why.
void CpuVisit::tell_refused(size_t index) {
  if (!refused_.load(std::memory_order_relaxed)) return;
  const auto call = bound_.call_of(command_of(index).command);
  guarded([&] { kernels::tell_refused(call->call(), pointers_[index].views); });
}

void CpuVisit::run_alone(size_t index, const Launch& launch) {
  const BoundCommand& command = command_of(index);
  Pointers& pointers = pointers_[index];
  guarded([&] {
    if (!command.kernel) {
      const ops::Call& call = command.call->call();
      InPlace results(command, pointers.outputs, bound_.program(), found_);
      if (!command.body) return ops::evaluate(call, pointers.views, results, {launch.stop, nullptr});
      const BodyOfVisit body(*command.body, launch);
      return ops::evaluate(call, pointers.views, results, {launch.stop, &body});
    }
    SpinBarrier alone(1);
    command.kernel->run({0, 1, alone, launch.arena + scratch_of(index), &refused_}, pointers.inputs.data(),
                        pointers.outputs.data());
  });
  tell_refused(index);
}

// A thread's share of every command. A serial command is thread 0's alone, and needs a barrier only towards commands
// that the others take part in. Thread 0 asks whether to stop, and knows what failed; at the next barrier all leave.
void CpuVisit::run_share(int thread, SpinBarrier& barrier, const Stretch& stretch, const Launch& launch) {
  const DenormalsAsZeros denormals(!bound_.keep_denormals());
  std::vector<CommandTime>* const times = launch.commands;
  bool stops = false;
  int met = 0;
  const auto meet = [&] {
    ++met;
    if (stops) last_barrier_.store(met, std::memory_order_relaxed);
    barrier.arrive_and_wait();
    // Thread 0 may be ahead, and have named a later one.
    return met < last_barrier_.load(std::memory_order_relaxed);
  };
  bool all_here = true;  // every thread has seen what was written so far
  for (size_t k = stretch.from; k < stretch.to; ++k) {
    const BoundCommand& command = command_of(k);
    if (thread == 0) announce_parts(k, pointers_.size());
    if (thread == 0 && !stops) stops = failure_ || (launch.stop && k < launch.unstopped_from && launch.stop->asked());
    if (k == launch.unstopped_from) all_here = false;  // nobody begins before it is known
    const auto begin = times ? Clock::now() : Clock::time_point();
    if (command.is_empty || lies_there(k)) {
      if (times && thread == 0) times->push_back({.start_us = us(begin - stretch.begin)});
      continue;
    }
    const auto compute = [&](const auto& share) {
      const auto from = times ? Clock::now() : Clock::time_point();
      share();
      if (times)
        thread_us_[k * static_cast<size_t>(bound_.threads()) + static_cast<size_t>(thread)] = us(Clock::now() - from);
    };
    if (command.serial) {
      if (thread == 0 && !stops) compute([&] { run_alone(k, launch); });
      all_here = false;
    } else {
      if (!all_here && !meet()) return;
      all_here = true;
      compute([&] {
        command.kernel->run({thread, barrier.threads(), barrier, launch.arena + scratch_of(k), &refused_},
                            pointers_[k].inputs.data(), pointers_[k].outputs.data());
      });
      if (!meet()) return;
      if (thread == 0) tell_refused(k);
    }
    if (times && thread == 0)
      times->push_back({.start_us = us(begin - stretch.begin), .wall_us = us(Clock::now() - begin)});
  }
  if (stops) last_barrier_.store(met, std::memory_order_relaxed);
}

class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(const Load& load)
      : program_(load.program),
        code_(program::read_cpu_code(load.code, load.subprogram, load.program, load.called)),
        bodies_(load.bodies) {
    kernels::chosen_isa();  // throws where HETNN_TARGET names no instructions of this machine
    for (const program::Command& command : code_.commands) check_body(command, load.program, bodies_, load.called);
    for (const program::Command& command : code_.commands) written_.push_back(command.outputs);
    if (code_.blocks == 1 || written_.empty()) return;
    // What holds all blocks is there from the first command of the first block to the last of the last.
    const auto holds_all = [&](int32_t id) { return std::ranges::find(code_.in_blocks, id) != code_.in_blocks.end(); };
    std::vector<int32_t> outputs;
    for (std::vector<int32_t>& each : written_) {
      std::ranges::copy_if(each, std::back_inserter(outputs), holds_all);
      std::erase_if(each, holds_all);
    }
    written_.front().insert(written_.front().end(), outputs.begin(), outputs.end());
    kept_ = load.subprogram.inputs;
  }
  std::vector<Moment> moments() const override {
    std::vector<Moment> out;
    for (size_t k = 0; k < written_.size(); ++k) out.push_back({code_.commands[k].inputs, written_[k]});
    if (!kept_.empty()) out.push_back({kept_, {}});
    return out;
  }
  std::unique_ptr<const BoundCode> bind(const Sizes& sizes) const override {
    return std::make_unique<CpuBound>(program_, code_, bodies_, sizes);
  }
  bool one_at_a_time() const override { return false; }  // the pool of threads bounds what runs at once

 private:
  const program::Program& program_;
  const program::CpuCode code_;
  const LoadedBodies bodies_;
  std::vector<std::vector<int32_t>> written_;  // by each command; what holds all blocks by the first
  std::vector<int32_t> kept_;                  // inputs that are read again for the next block
};

}  // namespace

std::unique_ptr<const Executor> load_cpu(const Load& load) { return std::make_unique<CpuExecutor>(load); }

}  // namespace hetnn::runtime
