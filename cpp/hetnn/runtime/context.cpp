// Runs a bound program: visits to devices, in order or at once.
#include "hetnn/runtime/context.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "hetnn/base/error.h"
#include "hetnn/base/parallel.h"
#include "hetnn/base/progress.h"

namespace hetnn::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// Shorter than two threads need to hand a lock to one another and back.
constexpr double kBrief_us = 50;

}  // namespace

struct Context::Run final : FoundSizes {
  Run(Context& owner, ops::Results& to, const RunOptions& options, Executable& outermost)
      : context(owner),
        outputs(to),
        timed(options.times || options.may_wait),
        time_bodies(options.times),
        time_commands(options.times && options.time_commands),
        stop(options.stop),
        held(options.held),
        around(outermost) {}

  // Whether a run around this one has the device's turn.
  bool holds(const FairSemaphore* queue) const {
    for (const Held* at = held; at; at = at->others) {
      if (at->queue == queue) return true;
    }
    return false;
  }

  double now_us() const { return timed ? std::chrono::duration<double, std::micro>(Clock::now() - begin).count() : 0; }

  void define(std::string_view symbol, int64_t value) override {
    bindings.insert_or_assign(std::string(symbol), value);
  }

  std::byte* allocate(int32_t buffer, std::span<const int64_t> shape) override {
    const program::Program& program = phase->program();
    const program::Buffer& wanted = program.buffers[static_cast<size_t>(buffer)];
    const std::vector<int64_t> planned = evaluate(wanted.shape, bindings);
    if (!std::ranges::equal(planned, shape)) {
      throw InvalidModel(text("'", wanted.name, "' came out as ", to_string(Shape(shape.begin(), shape.end())),
                              " where ", to_string(Shape(planned.begin(), planned.end())),
                              " follows from its sizes. Check the model's shapes."));
    }
    const auto port = std::ranges::find(program.outputs, buffer, &program::Port::buffer);
    if (port != program.outputs.end()) {
      return context.addresses_[static_cast<size_t>(buffer)] =
                 outputs.allocate(static_cast<size_t>(port - program.outputs.begin()), wanted.dtype, shape);
    }
    return context.keep(buffer, ops::View(wanted.dtype, shape, nullptr).elems() * dtype_bytes(wanted.dtype));
  }

  Context& context;
  ops::Results& outputs;
  const bool timed, time_bodies, time_commands;
  const Stop* const stop;
  const Held* const held;
  Executable& around;
  const Clock::time_point begin = timed ? Clock::now() : Clock::time_point();
  const BoundPhase* phase = nullptr;  // that runs
  Bindings bindings = {};             // so far, where the program defines symbols
};

Context::Context(std::shared_ptr<const BoundPhase> first)
    : phases_(first->loaded->phases.size()),
      addresses_(first->buffers.size(), nullptr),
      steps_(first->loaded->executors.size()),
      finds_(std::ranges::any_of(first->program().subprograms, [](const auto& s) { return !s.defines.empty(); })),
      last_us_(std::numeric_limits<double>::infinity()) {
  open(std::move(first));
}

bool Context::serves(std::span<const ops::View> inputs) const {
  const std::vector<program::Port>& ports = first()->program().inputs;
  return std::ranges::equal(ports, inputs, [&](const program::Port& port, const ops::View& input) {
    const BoundBuffer& buffer = first()->buffers[static_cast<size_t>(port.buffer)];
    if (buffer.view.dtype != input.dtype || buffer.shape.size() != input.shape.size()) return false;
    // Of so few dims a loop is done before a call of the library's comparison has begun.
    for (size_t d = 0; d < input.shape.size(); ++d) {
      if (buffer.shape[d] != input.shape[d]) return false;
    }
    return true;
  });
}

// Nor does a brief run wait for another one.
bool Context::is_brief() const {
  return last_us_ <= kBrief_us && !finds_ && steps_.size() == 1 && !first()->queues.front();
}

int64_t Context::counted_bytes() const {
  size_t out = arena_.size_bytes();
  for (const auto& [id, block] : kept_) out += block.size_bytes();
  for (const AlignedBuffer& block : free_) out += block.size_bytes();
  for (const VisitState& step : steps_) out += step.visit ? static_cast<size_t>(step.visit->bytes()) : 0;
  return static_cast<int64_t>(out);
}

// Makes the phase's visits, and finds where its buffers of fixed places lie.
void Context::open(std::shared_ptr<const BoundPhase> bound) {
  const BoundPhase& phase = *bound;
  const auto [begin, end] = phase.phase();
  for (size_t k = begin; k < end; ++k) steps_[k].visit.reset();
  phases_[phase.number] = std::move(bound);
  const program::Program& program = phase.program();
  addresses_.resize(std::max(addresses_.size(), phase.buffers.size()), nullptr);
  for (size_t k = 0; k < program.buffers.size(); ++k) {
    const program::Buffer& buffer = program.buffers[k];
    // Devices only read constants; the pointer's type is that of all buffers.
    if (buffer.place == program::Place::constant)
      addresses_[k] = const_cast<std::byte*>(program.weights.at(buffer.offset_bytes, buffer.size_bytes).data());
  }
  if (arena_.size_bytes() < static_cast<size_t>(phase.memory_bytes))
    arena_ = AlignedBuffer(static_cast<size_t>(phase.memory_bytes));
  for (size_t k = begin; k < end; ++k) steps_[k].visit = phase.code(k)->open(phase.scratch[k - begin]);
  bytes_ = counted_bytes();
}

// Gives the phase's buffers memory. What lives in the arena no other phase reads.
void Context::enter(const BoundPhase& phase, Run& run) {
  run.phase = &phase;
  for (const int32_t id : phase.in_arena)
    addresses_[static_cast<size_t>(id)] = arena_.data() + phase.buffers[static_cast<size_t>(id)].arena_offset_bytes;
  for (const int32_t id : phase.kept)
    addresses_[static_cast<size_t>(id)] = keep(id, phase.buffers[static_cast<size_t>(id)].size_bytes);
  for (const size_t port : phase.outputs) {
    const auto id = static_cast<size_t>(phase.program().outputs[port].buffer);
    addresses_[id] = run.outputs.allocate(port, phase.buffers[id].view.dtype, phase.buffers[id].shape);
  }
  for (const BufferView& view : phase.views)
    addresses_[static_cast<size_t>(view.buffer)] = addresses_[static_cast<size_t>(view.of)] + view.offset_bytes;
}

std::byte* Context::keep(int32_t buffer, int64_t size_bytes) {
  const auto size = static_cast<size_t>(size_bytes);
  // The smallest that is large enough, else the largest, which makes room.
  const auto best = std::ranges::min_element(free_, [&](const AlignedBuffer& a, const AlignedBuffer& b) {
    const bool fits = a.size_bytes() >= size;
    if (fits != (b.size_bytes() >= size)) return fits;
    return fits ? a.size_bytes() < b.size_bytes() : a.size_bytes() > b.size_bytes();
  });
  AlignedBuffer block;
  if (best != free_.end()) {
    block = std::move(*best);
    free_.erase(best);
  }
  if (block.size_bytes() < size || !block.data()) {
    block = AlignedBuffer();
    block = AlignedBuffer(size);
  }
  addresses_[static_cast<size_t>(buffer)] = block.data();
  return (kept_[buffer] = std::move(block)).data();
}

// Takes back what no later phase reads.
void Context::leave(size_t number) {
  const std::vector<int>& until = first()->loaded->kept_until;
  for (auto at = kept_.begin(); at != kept_.end();) {
    const auto next = std::next(at);
    if (until[static_cast<size_t>(at->first)] <= static_cast<int>(number)) {
      free_.push_back(std::move(at->second));
      kept_.erase(at);
    }
    at = next;
  }
}

void Context::run_step(size_t k, Run& run) {
  FairSemaphore* queue = run.phase->queues[k - run.phase->phase().begin];
  if (run.holds(queue)) queue = nullptr;
  VisitState& step = steps_[k];
  if (run.stop) run.stop->check();
  const double ready_us = run.now_us();
  if (queue) queue->enter(run.stop);
  const Admission admission(queue);
  step.start_us = run.now_us();
  step.queue_us = step.start_us - ready_us;
  step.computed.clear();
  step.visit->upload(addresses_);
  const bool defines = !run.phase->program().subprograms[k].defines.empty();
  const Held held{queue, run.held};
  const auto all = static_cast<double>(steps_.size());
  const ProgressStep told("run", static_cast<double>(k) / all, static_cast<double>(k + 1) / all);
  step.visit->start({run.time_commands ? &step.commands : nullptr, run.stop, defines ? &run : nullptr, &held,
                     &run.around, run.time_bodies ? &step.bodies : nullptr, run.begin,
                     k + 1 == steps_.size() ? run.phase->in_place.unstopped_from : kNoMoment, arena_.data()},
                    step.computed);
  step.computed.wait(run.stop);
  step.visit->download(addresses_);
  step.finish_us = run.now_us();
}

// The steps of one device in turn, each when what it depends on is done. All lanes run at once, and steps stand in an
// order in which they could run one after another, so that none waits for ever. A step that fails fails those after it.
void Context::run_lane(const Lane& lane, Run& run) {
  const auto begin = static_cast<int32_t>(run.phase->phase().begin);
  std::exception_ptr error;
  for (const int k : lane) {
    VisitState& step = steps_[static_cast<size_t>(k)];
    try {
      if (error) std::rethrow_exception(error);
      for (const int32_t earlier : run.phase->program().subprograms[static_cast<size_t>(k)].depends_on) {
        if (earlier >= begin) steps_[static_cast<size_t>(earlier)].done.wait(run.stop);
      }
      run_step(static_cast<size_t>(k), run);
      step.done.set();
    } catch (...) {
      error = std::current_exception();
      step.done.fail(error);
    }
  }
  if (error) std::rethrow_exception(error);
}

void Context::run(std::span<const ops::View> inputs, ops::Results& outputs, std::span<StateMemory> states,
                  const RunOptions& options, Executable& around, const Bind& bind) {
  const program::Program& program = first()->program();
  for (size_t k = 0; k < inputs.size(); ++k)
    addresses_[static_cast<size_t>(program.inputs[k].buffer)] = const_cast<std::byte*>(inputs[k].data);
  const std::vector<bool>& in_place = first()->in_place.states;
  for (size_t k = 0; k < states.size(); ++k) {
    StateMemory& state = states[k];
    if (!in_place[k] && !state.next.data()) state.next = AlignedBuffer(state.now.size_bytes());
    addresses_[static_cast<size_t>(program.states[k].input)] = state.now.data();
    addresses_[static_cast<size_t>(program.states[k].output)] = in_place[k] ? state.now.data() : state.next.data();
  }
  Run run(*this, outputs, options, around);
  if (finds_) run.bindings = first()->bindings;
  for (VisitState& step : steps_) {
    step.commands.clear();
    step.bodies.clear();
  }
  leave(phases_.size());  // what a run that failed has left
  for (size_t number = 0; number < phases_.size(); ++number) {
    if (number > 0) {
      std::shared_ptr<const BoundPhase> bound = bind(number, run.bindings);
      if (phases_[number] != bound) open(std::move(bound));
    }
    const BoundPhase& phase = *phases_[number];
    enter(phase, run);
    if (number == 0 && options.may_wait && !is_brief()) options.may_wait();
    if (options.overlap && phase.overlaps) {
      for (size_t k = phase.phase().begin; k < phase.phase().end; ++k) steps_[k].done.clear();
      parallel_region(static_cast<int>(phase.lanes.size()), [&](int lane) {
        run_lane(phase.lanes[static_cast<size_t>(lane)], run);
        // The caller's thread has more to do than to wait for the others' end.
        if (lane > 0 || !run.stop) return;
        for (size_t k = phase.phase().begin; k < phase.phase().end; ++k) steps_[k].done.wait(run.stop);
      });
    } else {
      for (size_t k = phase.phase().begin; k < phase.phase().end; ++k) run_step(k, run);
    }
    leave(number);
  }
  for (size_t k = 0; k < states.size(); ++k) {
    if (!in_place[k]) std::swap(states[k].now, states[k].next);
  }
  if (finds_) bytes_ = counted_bytes();
  if (run.timed) last_us_ = run.now_us();
  if (options.times) report(*options.times);
}

bool Context::falls_back(size_t subprogram) const {
  const auto phase = std::ranges::find_if(phases_, [&](const auto& bound) { return subprogram < bound->phase().end; });
  return (*phase)->falls_back(subprogram);
}

void Context::report(RunTimes& times) const {
  const program::Program& program = first()->program();
  times.subprograms.clear();
  times.bodies.clear();
  times.commands.clear();
  for (size_t k = 0; k < steps_.size(); ++k) {
    const VisitState& step = steps_[k];
    const DeviceTimes own = step.visit->times();
    times.subprograms.push_back({program.subprograms[k].name, program.subprograms[k].device, step.start_us,
                                 step.finish_us, step.queue_us, own.cycles, own.simulated_us, falls_back(k),
                                 step.finish_us - step.start_us});
    for (const BodyTimes& body : step.bodies) {
      times.subprograms.back().busy_us -= body.took_us;
      for (const SubprogramTime& row : body.rows) {
        times.bodies.push_back(row);
        times.bodies.back().name = text(body.loop, "/body ", row.name);
      }
    }
    for (const CommandTime& command : step.commands) {
      times.commands.push_back(command);
      times.commands.back().start_us += step.start_us;
      times.commands.back().subprogram = k;
    }
  }
}

}  // namespace hetnn::runtime
