// Binding by input shapes, a cache of bound programs, a pool of contexts.
#include "hetnn/runtime/executable.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <set>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/base/sizes.h"
#include "hetnn/ops/sizes.h"
#include "hetnn/program/pack.h"
#include "hetnn/program/validate.h"
#include "hetnn/runtime/context.h"

namespace hetnn::runtime {
namespace {

constexpr size_t kBound = 32;                            // shapes kept ready of every phase
constexpr int64_t kMostKept_bytes = int64_t{256} << 20;  // unless told otherwise

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
program::Blob copied(const program::Blob& image) {
  auto copy = std::make_shared<AlignedBuffer>(image.bytes.size());
  std::memcpy(copy->data(), image.bytes.data(), image.bytes.size());
  return {copy, {copy->data(), image.bytes.size()}};
}
program::Blob aligned(program::Blob image) {
  return reinterpret_cast<uintptr_t>(image.bytes.data()) % kBufferAlignment_bytes == 0 ? image : copied(image);
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

// Outputs in memory of the caller.
class Given final : public ops::Results {
 public:
  explicit Given(std::span<std::byte* const> outputs) : outputs_(outputs) {}
  std::byte* allocate(size_t index, DType, std::span<const int64_t>) override { return outputs_[index]; }

 private:
  std::span<std::byte* const> outputs_;
};

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

}  // namespace

std::unique_ptr<Executable> Executable::load(const std::string& path, int threads, bool copy) {
  program::Blob image = program::map_file(path);
  if (copy) image = copied(image);
  return std::make_unique<Executable>(std::move(image), threads, text("'", path, "'"));
}

Executable::Executable(program::Blob image, int threads, const std::string& called)
    : threads_(usable_threads(threads)),
      loaded_(runtime::load(program::unpack(aligned(std::move(image)), called), called)),
      own_(program()),
      entries_(loaded_->phases.size()),
      most_kept_bytes_(kMostKept_bytes) {}

Executable::~Executable() = default;

std::unique_ptr<Session> Executable::session() const { return std::make_unique<Session>(program()); }

void Executable::reset() { own_.reset(); }

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

std::vector<std::byte> Executable::image() const { return program::pack(*program()); }

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

Bindings Executable::bindings_of(std::span<const Argument> arguments) const {
  const auto program = this->program();
  if (arguments.size() != program->inputs.size()) {
    std::string names;
    for (const program::Port& port : program->inputs) names += text(names.empty() ? "" : ", ", port.name);
    throw InvalidModel(
        text("the model takes ", program->inputs.size(), " inputs (", names, "); got ", arguments.size(), "."));
  }
  Bindings out;
  auto expected = [&](size_t k) {
    const program::Buffer& buffer = program->buffers[static_cast<size_t>(program->inputs[k].buffer)];
    return text(dtype_name(buffer.dtype), to_string(buffer.shape));
  };
  auto refuse = [&](size_t k, const std::string& why) {
    const Argument& given = arguments[k];
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
  for (const Symbol& symbol : program->symbols) {
    auto at = out.find(symbol.name);
    if (at == out.end() && defined_by_run(*program, symbol.name)) continue;
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

std::vector<std::vector<int64_t>> Executable::output_shapes(const Bindings& bindings) const {
  const auto program = this->program();
  std::vector<std::vector<int64_t>> out;
  for (const program::Port& port : program->outputs) {
    const program::Buffer& buffer = program->buffers[static_cast<size_t>(port.buffer)];
    out.push_back(evaluate(buffer.shape, bindings));
    std::vector<int64_t> factors = out.back();
    factors.push_back(dtype_bytes(buffer.dtype));
    const std::string called = "the output '" + port.name + "'";
    check_memory(checked_product(factors, called.c_str()), called);
  }
  return out;
}

// The phase with fallbacks where devices have no code for its sizes. Unsupported where one has no fallback either.
std::shared_ptr<const BoundPhase> Executable::fallen_back(const BoundPhase& incomplete) const {
  const std::string sizes = bindings_text(incomplete.bindings);
  const auto out = bind(incomplete.loaded, incomplete.number, incomplete.bindings, threads_, Fallback::where_needed);
  if (const std::string missing = missing_code(*out); !missing.empty()) {
    throw Unsupported(text("there is no accelerator code for {", sizes, "}, and the compiler is not at hand.", missing,
                           "\nCompile with shapes=[...] that names it, or run it once before saving."));
  }
  std::shared_ptr<const Notice> notice;
  {
    const std::lock_guard lock(mutex_);
    notice = notice_;
  }
  if (notice && *notice) {
    (*notice)(text("there is no accelerator code for {", sizes, "}, so the general processor computes in its place.",
                   missing_code(incomplete),
                   "\nWhere it is to be fast, compile with shapes=[...] that names it, or run it once before saving."));
  }
  return out;
}

std::shared_ptr<const BoundPhase> Executable::bound_for(size_t phase, const Bindings& bindings) {
  std::list<Entry>& entries = entries_[phase];
  auto find = [&]() -> std::shared_ptr<const BoundPhase> {
    for (auto at = entries.begin(); at != entries.end(); ++at) {
      if (at->bound->bindings != bindings) continue;
      entries.splice(entries.begin(), entries, at);
      return entries.front().bound;
    }
    return nullptr;
  };
  std::shared_ptr<const LoadedProgram> loaded;
  {
    const std::lock_guard lock(mutex_);
    if (auto found = find()) return found;
    loaded = loaded_;
  }
  std::shared_ptr<const BoundPhase> bound = bind(loaded, phase, bindings, threads_);
  if (!missing_code(*bound).empty()) {
    const std::lock_guard one_at_a_time(specializing_);
    std::shared_ptr<const Specializer> specializer;
    {
      const std::lock_guard lock(mutex_);
      if (auto found = find()) return found;
      specializer = specializer_;
    }
    if (specializer && *specializer) {
      const program::Weights before = this->program()->weights;
      auto bytes = std::make_shared<const std::vector<std::byte>>((*specializer)(bindings, before.size_bytes()));
      const std::string called = "the specialized executable";
      auto grown =
          runtime::load(program::unpack(aligned({bytes, *bytes}), called, before), called, this->loaded().get());
      bound = bind(grown, phase, bindings, threads_);
      HETNN_ASSERT(missing_code(*bound).empty(), "specializing gave no code for {", bindings_text(bindings), "}");
      const std::lock_guard lock(mutex_);
      loaded_.swap(grown);
    } else {
      bound = fallen_back(*bound);
    }
  }
  std::list<Entry> evicted;
  const std::lock_guard lock(mutex_);
  if (auto found = find()) return found;
  entries.push_front({bound, {}});
  if (entries.size() > kBound) evicted.splice(evicted.begin(), entries, std::prev(entries.end()));
  return bound;
}

std::unique_ptr<Context> Executable::take_context(const std::shared_ptr<const BoundPhase>& first) {
  {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_.front()) {
      if (entry.bound != first || entry.idle.empty()) continue;
      auto out = std::move(entry.idle.back());
      entry.idle.pop_back();
      return out;
    }
  }
  try {
    return std::make_unique<Context>(first);
  } catch (const std::bad_alloc&) {
    throw DoesNotFit(text("a run takes an arena of ", first->arena_bytes,
                          " bytes besides what its devices need, and this process cannot have so much."));
  }
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

void Executable::give_back(std::unique_ptr<Context> context) {
  std::vector<std::unique_ptr<Context>> dropped;  // die after the lock
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_.front()) {
    if (entry.bound != context->first()) continue;
    entry.idle.push_back(std::move(context));
    dropped = surplus();
    return;
  }
}

std::vector<std::unique_ptr<Context>> Executable::surplus() {
  std::vector<std::unique_ptr<Context>> out;
  int64_t kept_bytes = 0;
  bool first = true;
  for (Entry& entry : entries_.front()) {
    // Those given back last stand last.
    size_t keep = 0;
    for (; keep < entry.idle.size(); ++keep) {
      const int64_t bytes = entry.idle[entry.idle.size() - 1 - keep]->bytes();
      if (!first && kept_bytes + bytes > most_kept_bytes_) break;
      kept_bytes += bytes;
      first = false;
    }
    const auto end = entry.idle.end() - static_cast<std::ptrdiff_t>(keep);
    out.insert(out.end(), std::move_iterator(entry.idle.begin()), std::move_iterator(end));
    entry.idle.erase(entry.idle.begin(), end);
  }
  return out;
}

void Executable::keep_at_most(int64_t bytes) {
  std::vector<std::unique_ptr<Context>> dropped;
  const std::lock_guard lock(mutex_);
  most_kept_bytes_ = bytes;
  dropped = surplus();
}

int64_t Executable::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t out = 0;
  for (const Entry& entry : entries_.front()) {
    for (const auto& context : entry.idle) out += context->bytes();
  }
  return out;
}

void Executable::limit_runs(int most, bool refuse) {
  turns_ = most > 0 ? std::make_unique<Turns>(most) : nullptr;
  refuse_ = refuse;
}

Turn Executable::admit(const Stop* stop) {
  if (turns_ && !refuse_) turns_->enter(stop);
  if (turns_ && refuse_ && !turns_->try_enter()) {
    throw Unavailable(text("all ", turns_->places(),
                           " runs that the executable takes at once are under way. Try again "
                           "later, or let more in (max_concurrent_runs)."));
  }
  return Turn(turns_.get());
}

void Executable::run(const Bindings& bindings, std::span<const std::byte* const> inputs, ops::Results& outputs,
                     const RunOptions& options) {
  const Turn turn = admit(options.stop);
  const std::shared_ptr<const BoundPhase> first = bound_for(0, bindings);
  const auto later = [this](size_t phase, const Bindings& known) { return bound_for(phase, known); };
  Session& session = options.session ? *options.session : own_;
  if (!session.fits(first->program()))
    throw InvalidModel("the session has the states of another executable. Take one from this executable's session().");
  std::unique_ptr<Context> context = take_context(first);
  if (session.states_.empty()) {
    context->run(inputs, outputs, {}, options, later);
  } else {
    session.turns_.enter(options.stop);
    const Turn one_run(&session.turns_);
    context->run(inputs, outputs, session.states_, options, later);
    for (StateMemory& state : session.states_) std::swap(state.now, state.next);
  }
  give_back(std::move(context));
}

void Executable::run(const Bindings& bindings, std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs, const RunOptions& options) {
  Given given(outputs);
  run(bindings, inputs, given, options);
}

std::vector<Tensor> Executable::run(std::span<const Tensor> inputs, const RunOptions& options) {
  std::vector<Argument> arguments;
  std::vector<const std::byte*> from;
  for (const Tensor& input : inputs) {
    arguments.push_back({input.dtype(), input.shape()});
    from.push_back(input.data());
  }
  Made made(program()->outputs.size());
  run(bindings_of(arguments), from, made, options);
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
