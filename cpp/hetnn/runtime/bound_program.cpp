// Binding: evaluates shapes, binds code, gives arena buffers that never live together, whatever
// runs at once, the same bytes.
#include "hetnn/runtime/bound_program.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/base/sizes.h"
#include "hetnn/memory/fit.h"
#include "hetnn/memory/liveness.h"
#include "hetnn/program/validate.h"
#include "hetnn/runtime/in_place.h"
#include "hetnn/runtime/views.h"

namespace hetnn::runtime {
namespace {

using program::Place;

// Within 2^40 bytes in all, as no memory is larger.
std::vector<int64_t> strides_of(const program::Buffer& buffer, std::span<const int64_t> shape,
                                const Bindings& bindings) {
  constexpr double kMost = 0x1p40;
  std::vector<int64_t> out = evaluate(buffer.strides, bindings);
  double last = 1;
  bool sound = true;
  for (size_t k = 0; k < out.size(); ++k) {
    sound = sound && out[k] >= 0;
    last += static_cast<double>(out[k]) * static_cast<double>(std::max<int64_t>(shape[k], 1) - 1);
  }
  if (!sound || last * static_cast<double>(dtype_bytes(buffer.dtype)) > kMost) {
    throw InvalidModel(text("'", buffer.name, "' has the strides ", to_string(Shape(out.begin(), out.end())), " over ",
                            to_string(Shape(shape.begin(), shape.end())),
                            ". The executable is damaged; compile the model again."));
  }
  return out;
}

BoundBuffer bind_buffer(const program::Buffer& buffer, const Bindings& bindings) {
  BoundBuffer out;
  out.shape = evaluate(buffer.shape, bindings);
  for (int64_t dim : out.shape) {
    if (dim < 0)
      throw InvalidModel(text("'", buffer.name, "' would have the shape ",
                              to_string(Shape(out.shape.begin(), out.shape.end())), ". Give larger inputs."));
  }
  // All factors of what a view computes are among these.
  std::vector<int64_t> factors;
  for (const int64_t dim : out.shape) factors.push_back(std::max<int64_t>(dim, 1));
  factors.push_back(dtype_bytes(buffer.dtype));
  const std::string called = text("'", buffer.name, "'");
  checked_product(factors, called.c_str());
  if (buffer.packed) {
    out.view = kernels::TensorView::of_weight(buffer.dtype, out.shape);
    out.size_bytes = buffer.size_bytes;
  } else {
    if (buffer.layout == Layout::nhwc) {
      const int64_t pitch_elems = buffer.pitch.evaluate(bindings);
      if (pitch_elems < out.shape[1]) {
        throw InvalidModel(text("'", buffer.name, "' has a pitch of ", pitch_elems, " for ", out.shape[1],
                                " channels. The executable is damaged; compile the model again."));
      }
      factors[1] = pitch_elems;
      checked_product(factors, called.c_str());
      out.view = kernels::TensorView::nhwc(buffer.dtype, out.shape, pitch_elems);
    } else if (buffer.layout == Layout::strided) {
      out.view = kernels::TensorView::strided(buffer.dtype, out.shape, strides_of(buffer, out.shape, bindings));
    } else {
      out.view = kernels::TensorView::plain(buffer.dtype, out.shape);
    }
    out.size_bytes = out.view.span_bytes();
  }
  return out;
}

constexpr int32_t kNobody = -1, kCaller = -2;

// Every buffer has one source, and what is read was written before, whatever runs at once. What nothing reads or writes
// is refused, so that a program's memory follows from its work.
class Flow {
 public:
  Flow(const program::Program& program, const std::string& called)
      : program_(program), called_(called), source_(program.buffers.size(), kNobody), used_(program.buffers.size()) {
    for (const program::Port& port : program.inputs) enter(port.buffer);
    for (const program::State& state : program.states) enter(state.input);
    for (size_t k = 0; k < source_.size(); ++k) {
      if (program.buffers[k].place == Place::constant) source_[k] = kCaller;
    }
  }

  void add(int32_t subprogram, const std::vector<Moment>& moments) {
    const program::Subprogram& s = program_.subprograms[static_cast<size_t>(subprogram)];
    const std::string field = text("subprograms[", subprogram, "]");
    // That it waits for their writers was checked.
    const std::set<int32_t> given(s.inputs.begin(), s.inputs.end());
    for (const int32_t id : s.inputs) {
      // What has no elements, whatever the sizes, tells sizes by its shape, and needs nobody to write it.
      const program::Buffer& buffer = program_.buffers[at(id)];
      const bool empty = buffer.place == Place::arena && std::ranges::find(buffer.shape, Dim(0)) != buffer.shape.end();
      if (empty && source_[at(id)] == kNobody) source_[at(id)] = kCaller;
      check(source_[at(id)] != kNobody, field, id, "is read before anything writes it");
    }
    for (const Moment& moment : moments) {
      for (const int32_t id : moment.inputs) {
        if (id < 0) continue;
        const bool constant = program_.buffers[at(id)].place == Place::constant;
        check(source_[at(id)] != kNobody, field, id, "is read before anything writes it");
        check(constant || source_[at(id)] == subprogram || given.contains(id), field, id,
              "is read and is none of its inputs");
        used_[at(id)] = true;
      }
      for (const int32_t id : moment.outputs) {
        check(source_[at(id)] == kNobody, field, id, "is written a second time");
        source_[at(id)] = subprogram;
        used_[at(id)] = true;
      }
    }
    for (const int32_t id : s.outputs) check(source_[at(id)] == subprogram, field, id, "is never written by it");
  }

  // `other` is the flow where subprograms that can do so fall back. A run may mix the two.
  void finish(const Flow& other) const {
    for (size_t k = 0; k < source_.size(); ++k) {
      const auto id = static_cast<int32_t>(k);
      const bool port = program_.buffers[k].place == Place::input || program_.buffers[k].place == Place::output;
      check(source_[k] != kNobody || other.source_[k] != kNobody, "buffers", id, "is written by nothing");
      check(source_[k] == kNobody || other.source_[k] == kNobody || source_[k] == other.source_[k], "buffers", id,
            "is written by two");
      check(used_[k] || other.used_[k] || port, "buffers", id, "is used by nothing");
    }
  }

 private:
  static size_t at(int32_t id) { return static_cast<size_t>(id); }
  void enter(int32_t id) { source_[at(id)] = kCaller; }
  void check(bool holds, const std::string& field, int32_t id, std::string_view what) const {
    if (holds) return;
    throw InvalidModel(text(called_, ": ", field, ": buffer ", id, " '", program_.buffers[at(id)].name, "' ", what,
                            ". The file is damaged or was altered."));
  }

  const program::Program& program_;
  const std::string& called_;
  std::vector<int32_t> source_;  // of every buffer: a subprogram, nobody, or the caller
  std::vector<bool> used_;
};

// The steps of each device in their order, and what each step waits for: those it depends on, and the one that its
// device runs before. Steps are subprograms; what ran in an earlier phase is done.
struct Order {
  std::vector<std::vector<int>> lanes, waits_for;
};

Order order_of(const program::Program& program, const Phase& phase) {
  Order out;
  std::map<std::string, size_t, std::less<>> lane_of;
  const auto begin = static_cast<int>(phase.begin);
  for (size_t k = phase.begin; k < phase.end; ++k) {
    const program::Subprogram& subprogram = program.subprograms[k];
    std::vector<int>& waits = out.waits_for.emplace_back();
    for (const int32_t earlier : subprogram.depends_on) {
      if (earlier >= begin) waits.push_back(earlier - begin);
    }
    auto [at, fresh] = lane_of.emplace(subprogram.device, out.lanes.size());
    if (fresh) out.lanes.emplace_back();
    std::vector<int>& lane = out.lanes[at->second];
    if (!lane.empty()) waits.push_back(lane.back() - begin);
    lane.push_back(static_cast<int>(k));
  }
  return out;
}

// A phase ends behind a subprogram that defines symbols.
std::vector<Phase> phases_of(const program::Program& program) {
  std::vector<Phase> out{{}};
  for (size_t k = 0; k < program.subprograms.size(); ++k) {
    if (k > 0 && !program.subprograms[k - 1].defines.empty()) out.push_back({k, k});
    out.back().end = k + 1;
  }
  return out;
}

std::vector<int> kept_until(const program::Program& program, const std::vector<Phase>& phases) {
  std::vector<int> written(program.buffers.size(), -1), out(program.buffers.size(), -1);
  for (size_t p = 0; p < phases.size(); ++p) {
    for (size_t k = phases[p].begin; k < phases[p].end; ++k) {
      const program::Subprogram& subprogram = program.subprograms[k];
      for (const int32_t id : subprogram.inputs) {
        const int from = written[static_cast<size_t>(id)];
        if (from >= 0 && from < static_cast<int>(p)) out[static_cast<size_t>(id)] = static_cast<int>(p);
      }
      for (const int32_t id : subprogram.outputs) {
        const auto at = static_cast<size_t>(id);
        if (program.buffers[at].place != Place::arena) continue;
        written[at] = static_cast<int>(p);
        const std::set<std::string> symbols = symbols_of(program.buffers[at]);
        if (std::ranges::any_of(subprogram.defines, [&](const std::string& s) { return symbols.contains(s); }))
          out[at] = static_cast<int>(p);
      }
    }
  }
  return out;
}

// The lowest place for so many bytes between ranges that do not meet, which stand in order.
int64_t gap_among(const std::set<std::pair<int64_t, int64_t>>& taken, int64_t bytes) {
  int64_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (begin - at >= bytes) break;
    at = program::aligned(end);
  }
  return at;
}

// Scratch stands where no buffer is alive at its moment; where subprograms run at once behind all buffers, a block a
// lane.
void place_scratch(const std::vector<memory::Buffer>& buffers, const memory::Fit& fit, BoundPhase& out) {
  const Phase& phase = out.phase();
  out.memory_bytes = out.arena_bytes;
  std::vector<std::vector<int64_t>> bytes(phase.end - phase.begin);
  for (size_t k = phase.begin; k < phase.end; ++k)
    if (out.code(k)) bytes[k - phase.begin] = out.code(k)->scratch_bytes();
  out.scratch = bytes;
  if (out.overlaps) {
    for (const Lane& lane : out.lanes) {
      const int64_t begin = program::aligned(out.memory_bytes);
      for (const int k : lane) {
        const size_t step = static_cast<size_t>(k) - phase.begin;
        for (const int64_t each : bytes[step]) out.memory_bytes = std::max(out.memory_bytes, begin + each);
        std::ranges::fill(out.scratch[step], begin);
      }
    }
    return;
  }
  std::multimap<int64_t, size_t> begins, ends;  // by moments
  for (size_t k = 0; k < buffers.size(); ++k) {
    if (buffers[k].size_bytes == 0) continue;
    begins.emplace(buffers[k].lower, k);
    ends.emplace(buffers[k].upper, k);
  }
  std::set<std::pair<int64_t, int64_t>> alive;
  const auto range_of = [&](size_t k) { return std::pair(fit.offsets[k], fit.offsets[k] + buffers[k].size_bytes); };
  int64_t moment = 0;
  for (size_t k = phase.begin; k < phase.end; ++k) {
    if (!out.code(k)) continue;
    std::vector<int64_t>& scratch = out.scratch[k - phase.begin];
    scratch.resize(out.executors[k - phase.begin]->moments().size());
    for (int64_t& at : scratch) {
      const auto ended = ends.equal_range(moment), begun = begins.equal_range(moment);
      for (auto other = ended.first; other != ended.second; ++other) alive.erase(range_of(other->second));
      for (auto other = begun.first; other != begun.second; ++other) alive.insert(range_of(other->second));
      const int64_t wanted = at;
      at = wanted == 0 ? 0 : gap_among(alive, wanted);
      out.memory_bytes = std::max(out.memory_bytes, at + wanted);
      ++moment;
    }
  }
}

// Places what lives within the phase in the arena.
void place(const std::vector<std::vector<int>>& waits_for, BoundPhase& out) {
  const Phase& phase = out.phase();
  const auto lives_on = [&](int32_t id) {
    return out.program().buffers[static_cast<size_t>(id)].place != Place::arena ||
           out.loaded->kept_until[static_cast<size_t>(id)] >= 0;
  };
  memory::Liveness liveness(waits_for);
  const Views views = lay_out(out, lives_on, liveness.total());
  out.views = views.all();
  int64_t moments = 0;
  std::set<int32_t> used;
  for (size_t k = phase.begin; k < phase.end; ++k) {
    if (!out.code(k)) continue;
    for (const Moment& moment : out.executors[k - phase.begin]->moments()) {
      for (const auto ids : {moment.inputs, moment.outputs}) {
        for (const int32_t id : ids) {
          if (id < 0 || lives_on(views.holder(id))) continue;
          liveness.use(views.holder(id), static_cast<int>(k - phase.begin), moments);
          used.insert(views.holder(id));
        }
      }
      ++moments;
    }
  }
  out.overlaps = !liveness.total();
  out.in_place = find_states_in_place(out, views, liveness);
  std::vector<memory::Buffer> arena;
  for (const int32_t id : used) {
    out.in_arena.push_back(id);
    arena.push_back(liveness.lifetime(id, out.buffers[static_cast<size_t>(id)].size_bytes));
  }
  const memory::Fit fit =
      memory::fit_greedy(arena, program::kAlignment, liveness.meetings({out.in_arena.begin(), out.in_arena.end()}));
  for (size_t k = 0; k < out.in_arena.size(); ++k)
    out.buffers[static_cast<size_t>(out.in_arena[k])].arena_offset_bytes = fit.offsets[k];
  check_memory(fit.peak_bytes, "the arena");
  out.arena_bytes = fit.peak_bytes;
  place_scratch(arena, fit, out);
  check_memory(out.memory_bytes, "the arena");
}

}  // namespace

void check_memory(int64_t bytes, std::string_view what) {
  static const int64_t most_bytes = [] {
    const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? static_cast<int64_t>(pages) * page_bytes : kMostBytes;
  }();
  if (bytes > most_bytes) {
    throw DoesNotFit(text(what, " would take ", bytes, " bytes; this machine has ", most_bytes,
                          ". Give smaller inputs, or cut the model into smaller ones."));
  }
}

namespace {

std::shared_ptr<const LoadedProgram> load_one(program::Program program, const std::string& called,
                                              const LoadedBodies& bodies, Queues& queues) {
  auto out = std::make_shared<LoadedProgram>();
  out->program = std::move(program);
  out->bodies = bodies;
  for (size_t k = 0; k < out->program.subprograms.size(); ++k) {
    const program::Subprogram& subprogram = out->program.subprograms[k];
    const std::string name = text(called, ": subprograms[", k, "]");
    out->executors.push_back(load_executor({out->program, subprogram, name, subprogram.code, out->bodies}));
    out->fallbacks.push_back(subprogram.fallback ? load_executor({out->program, subprogram, text(name, ".fallback"),
                                                                  *subprogram.fallback, out->bodies})
                                                 : nullptr);
    auto& queue = queues[subprogram.device];
    if (!queue && out->executors.back()->one_at_a_time()) queue = std::make_shared<FairSemaphore>(1);
  }
  out->queues = queues;
  Flow flow(out->program, called), falling_back(out->program, called);
  for (size_t k = 0; k < out->executors.size(); ++k) {
    flow.add(static_cast<int32_t>(k), out->executors[k]->moments());
    falling_back.add(static_cast<int32_t>(k), (out->fallbacks[k] ? out->fallbacks : out->executors)[k]->moments());
  }
  flow.finish(falling_back);
  out->phases = phases_of(out->program);
  out->kept_until = kept_until(out->program, out->phases);
  return out;
}

}  // namespace

std::shared_ptr<const LoadedProgram> load(program::Program program, const std::string& called,
                                          const LoadedProgram* before) {
  Queues queues = before ? before->queues : Queues();
  LoadedBodies bodies;
  for (const program::Program& body : program.bodies)
    bodies.push_back(load_one(body, text(called, ": bodies[", bodies.size(), "]"), bodies, queues));
  return load_one(std::move(program), called, bodies, queues);
}

std::shared_ptr<const BoundPhase> bind(std::shared_ptr<const LoadedProgram> loaded, size_t number,
                                       const Bindings& bindings, int threads, Fallback fallback) {
  const program::Program& program = loaded->program;
  auto out = std::make_shared<BoundPhase>();
  out->loaded = std::move(loaded);
  out->number = number;
  out->bindings = bindings;
  out->threads = threads;
  const auto known = [&](const program::Buffer& buffer) {
    return std::ranges::all_of(symbols_of(buffer), [&](const std::string& s) { return bindings.contains(s); });
  };
  const bool all = std::ranges::all_of(program.subprograms, [](const auto& s) { return s.defines.empty(); });
  for (const program::Buffer& buffer : program.buffers)
    out->buffers.push_back(all || known(buffer) ? bind_buffer(buffer, bindings) : BoundBuffer());
  const Phase& phase = out->phase();
  for (size_t k = phase.begin; k < phase.end; ++k) {
    const Sizes sizes{out->bindings, out->buffers, threads};
    const Executor *own = out->loaded->executors[k].get(), *other = out->loaded->fallbacks[k].get();
    auto code = other && fallback == Fallback::always ? nullptr : own->bind(sizes);
    const bool falls_back = !code && other && fallback != Fallback::never;
    out->executors.push_back(falls_back ? other : own);
    out->codes.push_back(falls_back ? other->bind(sizes) : std::move(code));
    out->queues.push_back(
        out->executors.back()->one_at_a_time() ? out->loaded->queues.at(program.subprograms[k].device).get() : nullptr);
    for (const int32_t id : program.subprograms[k].outputs) {
      const program::Buffer& buffer = program.buffers[static_cast<size_t>(id)];
      if (!all && !known(buffer)) continue;
      if (out->loaded->kept_until[static_cast<size_t>(id)] >= 0) out->kept.push_back(id);
      const auto port = std::ranges::find(program.outputs, id, &program::Port::buffer);
      if (port == program.outputs.end()) continue;
      check_memory(out->buffers[static_cast<size_t>(id)].size_bytes, "the output '" + port->name + "'");
      out->outputs.push_back(static_cast<size_t>(port - program.outputs.begin()));
    }
  }
  Order order = order_of(program, phase);
  out->lanes = std::move(order.lanes);
  place(order.waits_for, *out);
  return out;
}

}  // namespace hetnn::runtime
