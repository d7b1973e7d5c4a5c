// Binding by input shapes, and a cache of bound programs.
#include "hetnn/runtime/executable.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <set>

#include "hetnn/base/affine_dim.h"
#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/bool_bytes.h"
#include "hetnn/base/counted.h"
#include "hetnn/base/error.h"
#include "hetnn/base/free_memory.h"
#include "hetnn/base/sizes.h"
#include "hetnn/ops/sizes.h"
#include "hetnn/program/pack.h"
#include "hetnn/program/validate.h"
#include "hetnn/runtime/context_pool.h"
#include "hetnn/runtime/slice.h"

namespace hetnn::runtime {
namespace {

constexpr size_t kBound = 32;  // shapes kept ready of every phase
constexpr size_t kMuchCode_bytes = size_t{1} << 16;

std::string bindings_text(const Bindings& bindings) {
  std::string out;
  for (const auto& [name, value] : bindings) out += text(out.empty() ? "" : ", ", name, " = ", value);
  return out;
}

// Subprograms whose code for these bindings is missing, with the bindings they have.
std::string missing_code(const BoundPhase& bound) {
  std::string out;
  for (size_t k = bound.phase().begin; k < bound.phase().end; ++k) {
    if (bound.code(k)) continue;
    out += text("\n  ", bound.program().subprograms[k].name, " was compiled for:");
    for (const Bindings& sizes : bound.loaded->executors[k]->bound_sizes())
      out += text(" {", bindings_text(sizes), "}");
  }
  return out;
}

// Kernels load whole vectors from weights, so an image that lies askew is copied; a mapped file never does.
program::Blob aligned(program::Blob image) {
  return reinterpret_cast<uintptr_t>(image.bytes.data()) % kBufferAlignment_bytes == 0 ? image : program::copied(image);
}

bool defined_by_run(const program::Program& program, const std::string& symbol) {
  return std::ranges::any_of(program.subprograms, [&](const program::Subprogram& subprogram) {
    return std::ranges::find(subprogram.defines, symbol) != subprogram.defines.end();
  });
}

// Values of some symbols. InvalidModel when one has none.
Bindings values_of(const std::set<std::string>& symbols, const Bindings& bindings) {
  Bindings out;
  for (const std::string& symbol : symbols) out.emplace(symbol, Dim::symbol(symbol).evaluate(bindings));
  return out;
}

// Adds the symbols that come out of a phase.
void add_found(const LoadedProgram& loaded, size_t phase, std::set<std::string>& symbols) {
  for (size_t k = loaded.phases[phase].begin; k < loaded.phases[phase].end; ++k) {
    const std::vector<std::string>& found = loaded.program.subprograms[k].defines;
    symbols.insert(found.begin(), found.end());
  }
}

// Outputs as tensors.
class Made final : public ops::Results {
 public:
  explicit Made(size_t count) : tensors(count) {}
  std::byte* allocate(size_t index, DType dtype, std::span<const int64_t> shape) override {
    std::byte* data = nullptr;
    tensors[index] = Tensor::zeros(dtype, {shape.begin(), shape.end()}, &data);
    return data;
  }

  std::vector<Tensor> tensors;
};

void check_booleans(const program::Program& program, std::span<const ops::View> inputs) {
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].dtype != DType::boolean) continue;
    const std::span bytes(inputs[k].data, static_cast<size_t>(inputs[k].elems()));
    if (const auto untrue = first_not_bool(bytes)) {
      throw InvalidModel(text("input '", program.inputs[k].name, "': element ", *untrue, " of a bool is the byte ",
                              static_cast<int>(bytes[*untrue]), "; expected 0 or 1. Compare with 0 to make bools."));
    }
  }
}

program::Program with_code_elsewhere(program::Program program, const Executable::Elsewhere& elsewhere) {
  for (size_t k = 0; k < program.subprograms.size(); ++k) {
    program::Subprogram& subprogram = program.subprograms[k];
    if (const auto at = elsewhere.find(subprogram.device); at != elsewhere.end())
      subprogram.code = at->second(program::pack(slice(program, k)));
  }
  return program;
}

}  // namespace

std::unique_ptr<Executable> Executable::load(const std::string& path, int threads, bool copy,
                                             const Elsewhere& elsewhere) {
  const std::string called = text("'", path, "'");
  program::Program program = with_code_elsewhere(program::read_program(path, called, copy), elsewhere);
  size_t code_bytes = 0;
  for (const program::Subprogram& each : program.subprograms) code_bytes += each.code.bytes.size();
  auto out = std::make_unique<Executable>(std::move(program), threads, called);
  // Reading leaves free blocks of several times the code's size between those in use, where no arena fits.
  if (code_bytes >= kMuchCode_bytes) return_free_memory();
  return out;
}

Executable::Executable(program::Program program, int threads, const std::string& called)
    : Executable(runtime::load(std::move(program), called), usable_threads(threads)) {}

Executable::Executable(program::Blob image, int threads, const std::string& called, const Elsewhere& elsewhere)
    : Executable(with_code_elsewhere(program::unpack(aligned(std::move(image)), called), elsewhere), threads, called) {}

Executable::Executable(std::shared_ptr<const LoadedProgram> loaded, int threads, int32_t body)
    : threads_(threads),
      body_(body),
      loaded_(std::move(loaded)),
      output_count_(loaded_->program.outputs.size()),
      own_(program()),
      bound_(loaded_->phases.size()),
      away_(loaded_->phases.size()),
      pool_(std::make_unique<ContextPool>()) {}

Executable::~Executable() = default;

std::unique_ptr<Session> Executable::session() const { return std::make_unique<Session>(program()); }

void Executable::set_specializer(Specializer specializer) {
  auto shared = std::make_shared<const Specializer>(std::move(specializer));
  const std::lock_guard lock(mutex_);
  specializer_.swap(shared);
}

void Executable::set_notice(Notice notice) {
  auto shared = std::make_shared<const Notice>(std::move(notice));
  const std::lock_guard lock(mutex_);
  notice_.swap(shared);
}

std::shared_ptr<const LoadedProgram> Executable::loaded() const {
  const std::lock_guard lock(mutex_);
  return loaded_;
}

std::shared_ptr<const program::Program> Executable::program() const {
  const auto now = loaded();
  return {now, &now->program};
}

program::Program Executable::now() { return own_.put_into(*program()); }

program::Image Executable::image() { return program::pack(now()); }

namespace {

// The input and axis that first give a symbol its value.
std::string axis_of(const program::Program& program, const std::string& symbol) {
  for (const program::Port& port : program.inputs) {
    const Shape& shape = program.buffers[static_cast<size_t>(port.buffer)].shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (ops::symbol_name(shape[d]) == symbol) return text("input '", port.name, "' axis ", d);
    }
  }
  return "an input";
}

}  // namespace

Bindings Executable::bindings_of(std::span<const ops::View> arguments) const {
  const auto program = this->program();
  if (arguments.size() != program->inputs.size()) {
    std::string names;
    for (const program::Port& port : program->inputs) names += text(names.empty() ? "" : ", ", port.name);
    throw InvalidModel(text("the model takes ", counted(program->inputs.size(), "input"), " (", names, "); got ",
                            arguments.size(), "."));
  }
  Bindings out;
  auto expected = [&](size_t k) {
    const program::Buffer& buffer = program->buffers[static_cast<size_t>(program->inputs[k].buffer)];
    return text(dtype_name(buffer.dtype), to_string(buffer.shape));
  };
  auto refuse = [&](size_t k, const std::string& why) {
    const ops::View& given = arguments[k];
    throw InvalidModel(text("input '", program->inputs[k].name, "' must be ", expected(k), "; got ",
                            dtype_name(given.dtype), to_string(Shape(given.shape.begin(), given.shape.end())), why));
  };
  for (size_t k = 0; k < arguments.size(); ++k) {
    const program::Buffer& buffer = program->buffers[static_cast<size_t>(program->inputs[k].buffer)];
    if (arguments[k].dtype != buffer.dtype) refuse(k, ". Convert it; nothing is cast silently.");
    if (arguments[k].shape.size() != buffer.shape.size()) refuse(k, text(", of another rank. Reshape it."));
    for (size_t d = 0; d < buffer.shape.size(); ++d) {
      const std::string symbol = ops::symbol_name(buffer.shape[d]);
      if (symbol.empty()) continue;
      auto [at, fresh] = out.emplace(symbol, arguments[k].shape[d]);
      if (!fresh && at->second != arguments[k].shape[d])
        refuse(k, text(": ", symbol, " is ", at->second, " elsewhere."));
    }
  }
  // Sizes like 4*h say h where no axis is h itself. All are compared with what is given below.
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Shape& shape = program->buffers[static_cast<size_t>(program->inputs[k].buffer)].shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (const auto found = solved(shape[d], arguments[k].shape[d])) out.insert(*found);
    }
  }
  for (const Symbol& symbol : program->symbols) {
    auto at = out.find(symbol.name);
    if (at == out.end() && defined_by_run(*program, symbol.name)) continue;
    for (size_t k = 0; at == out.end() && k < arguments.size(); ++k) {
      const Shape& shape = program->buffers[static_cast<size_t>(program->inputs[k].buffer)].shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        std::set<std::string> symbols;
        shape[d].collect_symbols(symbols);
        if (symbols.contains(symbol.name)) refuse(k, text(": dimension ", d, " must be ", shape[d], "."));
      }
    }
    if (at == out.end())
      throw InvalidModel(
          text("no input's shape gives the symbol '", symbol.name, "' a value. Export the model again."));
    if (at->second < symbol.min || at->second > symbol.max) {
      throw InvalidModel(text(axis_of(*program, symbol.name), ": the dimension '", symbol.name, "' must be in [",
                              symbol.min, ", ", symbol.max, "]; got ", at->second, ". Resize the input."));
    }
  }
  for (size_t k = 0; k < arguments.size(); ++k) {
    const program::Buffer& buffer = program->buffers[static_cast<size_t>(program->inputs[k].buffer)];
    for (size_t d = 0; d < buffer.shape.size(); ++d) {
      if (buffer.shape[d].evaluate(out) != arguments[k].shape[d])
        refuse(k, text(": dimension ", d, " must be ", buffer.shape[d].evaluate(out), "."));
    }
  }
  return out;
}

// The phase with fallbacks where devices have no code for its sizes. Unsupported where one has no fallback either.
// `refused`: why the compiler could make none; empty where it is not at hand.
std::shared_ptr<const BoundPhase> Executable::fallen_back(const BoundPhase& incomplete, const Executable& teller,
                                                          const std::string& refused) const {
  const std::string sizes = bindings_text(incomplete.bindings);
  auto out = bind(incomplete.loaded, incomplete.number, incomplete.bindings, threads_, Fallback::where_needed);
  if (const std::string missing = missing_code(*out); !missing.empty()) {
    if (!refused.empty()) throw Unsupported(text("an accelerator cannot run {", sizes, "}:", refused));
    throw Unsupported(text("there is no accelerator code for {", sizes, "}, and the compiler is not at hand.", missing,
                           "\nCompile with shapes=[...] that names it, or run it once before saving."));
  }
  std::shared_ptr<const Notice> notice;
  {
    const std::lock_guard lock(teller.mutex_);
    notice = teller.notice_;
  }
  if (!notice || !*notice) return out;
  if (refused.empty()) {
    (*notice)(text("there is no accelerator code for {", sizes, "}, so the general processor computes in its place.",
                   missing_code(incomplete),
                   "\nWhere it is to be fast, compile with shapes=[...] that names it, or run it once before saving."));
  } else {
    (*notice)(
        text("an accelerator cannot run {", sizes, "}, so the general processor computes in its place:", refused));
  }
  return out;
}

// The program or its body with code for these sizes, but for what devices `refused`; null where nothing can make it.
std::shared_ptr<const LoadedProgram> Executable::specialized(int32_t body, size_t phase, const Bindings& bindings,
                                                             std::string& refused) {
  const auto part = [body](std::shared_ptr<const LoadedProgram> whole) {
    if (body >= 0) whole = whole->bodies[static_cast<size_t>(body)];
    return whole;
  };
  const auto serves = [&](const std::shared_ptr<const LoadedProgram>& whole) {
    return missing_code(*bind(part(whole), phase, bindings, threads_)).empty();
  };
  const std::lock_guard one_at_a_time(specializing_);
  std::shared_ptr<const Specializer> specializer;
  {
    const std::lock_guard lock(mutex_);
    specializer = specializer_;
  }
  if (!specializer || !*specializer) return nullptr;
  const std::shared_ptr<const LoadedProgram> before = loaded();
  if (serves(before)) return part(before);  // another run had it compiled
  const program::Weights& weights = before->program.weights;
  Specialized made = (*specializer)(bindings, body, weights.size_bytes());
  refused = std::move(made.refused);
  auto bytes = std::make_shared<const program::Image>(std::move(made.image));
  const std::string called = "the specialized executable";
  auto grown = runtime::load(program::unpack(aligned({bytes, *bytes}), called, weights), called, before.get());
  HETNN_ASSERT(!refused.empty() || serves(grown), "specializing gave no code for {", bindings_text(bindings), "}");
  auto out = part(grown);
  const std::lock_guard lock(mutex_);
  loaded_.swap(grown);
  return out;
}

std::shared_ptr<const BoundPhase> Executable::bound_for(size_t phase, const Bindings& bindings, Executable* around,
                                                        Fallback fallback) {
  const bool away = fallback == Fallback::always;
  auto& ready = (away ? away_ : bound_)[phase];
  auto find = [&]() -> std::shared_ptr<const BoundPhase> {
    for (auto at = ready.begin(); at != ready.end(); ++at) {
      if ((*at)->bindings != bindings) continue;
      ready.splice(ready.begin(), ready, at);
      return ready.front();
    }
    return nullptr;
  };
  std::shared_ptr<const LoadedProgram> loaded;
  {
    const std::lock_guard lock(mutex_);
    if (auto found = find()) return found;
    loaded = loaded_;
  }
  std::shared_ptr<const BoundPhase> bound =
      bind(loaded, phase, bindings, threads_, away ? Fallback::always : Fallback::never);
  if (!away && !missing_code(*bound).empty()) {
    Executable& outermost = around ? *around : *this;
    std::string refused;
    if (auto grown = outermost.specialized(body_, phase, bindings, refused)) {
      bound = bind(grown, phase, bindings, threads_);
      const std::lock_guard lock(mutex_);
      if (body_ >= 0) loaded_.swap(grown);
    }
    if (!missing_code(*bound).empty()) bound = fallen_back(*bound, outermost, refused);
  }
  std::list<std::shared_ptr<const BoundPhase>> evicted;
  const std::lock_guard lock(mutex_);
  if (auto found = find()) return found;
  ready.push_front(bound);
  if (ready.size() > kBound) evicted.splice(evicted.begin(), ready, std::prev(ready.end()));
  return bound;
}

std::unique_ptr<Context> Executable::context_for(std::span<const ops::View> inputs, const RunOptions& options) {
  if (auto idle = pool_->take(inputs)) return idle;
  if (options.may_wait) options.may_wait();
  const std::shared_ptr<const BoundPhase> first = bound_for(0, bindings_of(inputs), options.around);
  try {
    return std::make_unique<Context>(first);
  } catch (const std::bad_alloc&) {
    throw DoesNotFit(text("a run takes an arena of ", first->memory_bytes,
                          " bytes besides what its devices need, and this process cannot have so much."));
  }
}

void Executable::prepare(std::span<const ops::View> inputs, ops::Results& outputs) {
  const std::shared_ptr<const BoundPhase> first = bound_for(0, bindings_of(inputs));
  for (const size_t port : first->outputs) {
    const BoundBuffer& buffer = first->buffers[static_cast<size_t>(first->program().outputs[port].buffer)];
    outputs.allocate(port, buffer.view.dtype, buffer.shape);
  }
}

std::vector<CommandTime> Executable::described(const Bindings& bindings, const kernels::Machine& machine) {
  const auto loaded = this->loaded();
  std::vector<CommandTime> out;
  std::set<std::string> known = free_symbols(loaded->program);
  for (size_t phase = 0; phase < loaded->phases.size(); ++phase) {
    try {
      const auto bound = bound_for(phase, values_of(known, bindings));
      for (size_t k = bound->phase().begin; k < bound->phase().end; ++k) {
        if (!bound->code(k)) continue;
        std::vector<CommandTime> rows = bound->code(k)->described(machine);
        std::ranges::move(rows, std::back_inserter(out));
      }
    } catch (const InvalidModel&) {
      if (phase == 0) throw;  // usual values of sizes that runs find need not go together
    }
    add_found(*loaded, phase, known);
  }
  return out;
}

void Executable::verify() const {
  const auto loaded = this->loaded();
  std::vector<Bindings> sizes(1);
  for (const Symbol& symbol : loaded->program.symbols) sizes[0][symbol.name] = symbol.hint;
  for (const auto& executor : loaded->executors) {
    const std::vector<Bindings> more = executor->bound_sizes();
    sizes.insert(sizes.end(), more.begin(), more.end());
  }
  for (const Bindings& each : sizes) {
    std::set<std::string> known = free_symbols(loaded->program);
    const size_t given = known.size();
    for (size_t phase = 0; phase < loaded->phases.size(); ++phase) {
      try {
        if (std::ranges::all_of(known, [&](const std::string& symbol) { return each.contains(symbol); })) {
          for (const Fallback fallback : {Fallback::never, Fallback::always})
            runtime::bind(loaded, phase, values_of(known, each), threads_, fallback);  // not the library's bind
        }
      } catch (const InvalidModel&) {
        // Usual values of sizes that runs find need not go together.
        if (known.size() == given) throw;
      }
      add_found(*loaded, phase, known);
    }
  }
}

void Executable::keep_at_most(int64_t bytes) { pool_->keep_at_most(bytes); }

int64_t Executable::kept_bytes() const { return pool_->kept_bytes(); }

void Executable::limit_runs(int most, bool refuse) {
  admissions_ = most > 0 ? std::make_unique<FairSemaphore>(most) : nullptr;
  refuse_ = refuse;
}

Admission Executable::admit(const RunOptions& options) {
  if (admissions_ && !refuse_) {
    if (options.may_wait) options.may_wait();
    admissions_->enter(options.stop);
  }
  if (admissions_ && refuse_ && !admissions_->try_enter()) {
    throw Unavailable(text("all ", admissions_->places(),
                           " runs that the executable takes at once are under way. Try again "
                           "later, or let more in (max_concurrent_runs)."));
  }
  return Admission(admissions_.get());
}

void Executable::run(std::span<const ops::View> inputs, ops::Results& outputs, const RunOptions& options) {
  const Admission admission = admit(options);
  std::unique_ptr<Context> context = context_for(inputs, options);
  check_booleans(context->first()->program(), inputs);
  if (options.session && !options.session->fits(context->first()->program()))
    throw InvalidModel("the session has the states of another executable. Take one from this executable's session().");
  Session& session = options.session ? *options.session : own_;
  Executable* const around = options.around ? options.around : this;
  const bool stateful = !session.states_.empty();
  if (stateful) {
    if (options.may_wait) options.may_wait();
    session.admissions_.enter(options.stop);
  }
  const Admission one_run(stateful ? &session.admissions_ : nullptr);
  const auto run_in = [&](Context& place, Fallback fallback) {
    const auto later = [&](size_t phase, const Bindings& known) { return bound_for(phase, known, around, fallback); };
    // By reference: a function that holds so much would be allocated.
    place.run(inputs, outputs, session.states_, options, *around, std::cref(later));
  };
  try {
    run_in(*context, Fallback::where_needed);
    pool_->give_back(std::move(context));
  } catch (const Unavailable&) {
    if (options.stop) options.stop->check();  // then it was the caller's own deadline
    const auto loaded = this->loaded();
    if (std::ranges::none_of(loaded->fallbacks, [](const auto& fallback) { return fallback != nullptr; })) throw;
    context.reset();
    // Nothing was changed by what failed: a run that has begun to write over states does not fail.
    Context away(bound_for(0, bindings_of(inputs), around, Fallback::always));
    run_in(away, Fallback::always);
  }
}

std::vector<Tensor> Executable::run(std::span<const Tensor> inputs, const RunOptions& options) {
  const std::vector<ops::View> views(inputs.begin(), inputs.end());
  return run(views, options);
}

std::vector<Tensor> Executable::run(std::span<const ops::View> inputs, const RunOptions& options) {
  Made made(output_count_);
  run(inputs, made, options);
  return std::move(made.tensors);
}

int64_t Executable::arena_bytes(const Bindings& bindings) {
  const auto loaded = this->loaded();
  int64_t out = 0;
  std::set<std::string> known = free_symbols(loaded->program);
  for (size_t phase = 0; phase < loaded->phases.size(); ++phase) {
    out = std::max(out, bound_for(phase, values_of(known, bindings))->arena_bytes);
    add_found(*loaded, phase, known);
  }
  return out;
}

}  // namespace hetnn::runtime
