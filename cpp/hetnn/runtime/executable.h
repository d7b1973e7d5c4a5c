// A loaded program: binds shapes, runs subprograms on their executors. Thread-safe and re-entrant.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "hetnn/base/fair_semaphore.h"
#include "hetnn/base/stop.h"
#include "hetnn/ops/meaning.h"
#include "hetnn/program/pack.h"
#include "hetnn/runtime/bound_program.h"
#include "hetnn/runtime/session.h"

namespace hetnn::runtime {

/// How a run is done. `session` null: on the states that the executable keeps for runs without one.
struct RunOptions {
  Session* session = nullptr;
  bool overlap = true;         // subprograms of different devices at once, where none waits for the other
  const Stop* stop = nullptr;  // ends the run early where it asks to; null: nothing does
  RunTimes* times = nullptr;
  bool time_commands = false;
  const Held* held = nullptr;    // by a run around this one
  Executable* around = nullptr;  // that run's, which compiles for this one, and tells its notices
  /// Called, maybe more than once, before the run does what takes long or waits for others, so that the caller can let
  /// go a lock that it holds. Empty: it holds none.
  std::function<void()> may_wait = {};
};

class Context;
class ContextPool;

/// Immutable but for code that is compiled later for further sizes; what it keeps ready between runs is bounded.
class Executable {
 public:
  /// The image of an addition to the weights that there are, and why devices cannot run subgraphs at those sizes, a
  /// line each.
  struct Specialized {
    program::Image image;
    std::string refused;
  };
  /// Compiles accelerator code for further sizes, of the program (-1) or of one of its bodies.
  using Specializer = std::function<Specialized(const Bindings&, int32_t body, int64_t weights_bytes)>;

  /// Of devices that stand elsewhere, by name: code that runs the image of a subprogram (runtime/slice.h) there.
  using Elsewhere = std::map<std::string, std::function<program::Code(const program::Image&)>, std::less<>>;

  /// Maps the file, whose weights are not copied and must not change, or copies it. InvalidModel when it is no sound
  /// executable.
  static std::unique_ptr<Executable> load(const std::string& path, int threads, bool copy = false,
                                          const Elsewhere& elsewhere = {});
  Executable(program::Program program, int threads, const std::string& called);
  /// `image` stays alive by its owner.
  Executable(program::Blob image, int threads, const std::string& called = "the executable",
             const Elsewhere& elsewhere = {});
  /// `body`: its number, where it is one of a program's.
  Executable(std::shared_ptr<const LoadedProgram> loaded, int threads, int32_t body = -1);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  void set_specializer(Specializer specializer);
  /// Told, once for each shape that is met, of devices that have no code for it and of what runs instead.
  using Notice = std::function<void(const std::string&)>;
  void set_notice(Notice notice);
  std::shared_ptr<const program::Program> program() const;
  /// The image with all that was specialized, and with what the states of runs without a session hold.
  program::Image image();
  /// The program with the states of its own session as they are.
  program::Program now();
  int threads() const { return threads_; }
  size_t output_count() const { return output_count_; }
  /// Bytes of memory that idle runs keep for those to come; one run's is always kept, that of the last.
  void keep_at_most(int64_t bytes);
  int64_t kept_bytes() const;
  /// Bounds the runs at one time, 0 meaning no bound: more wait for their turn, or are refused with Unavailable. Not
  /// while runs are under way.
  void limit_runs(int most, bool refuse);

  /// Runs on dense row-major memory of the caller. `outputs` is asked for each output when its shape is known: at the
  /// start where the inputs give it, else during the run and on any thread. InvalidModel naming the input, what was
  /// found and what is expected: count, element type, rank, a dimension, a symbol out of its range or with two values.
  /// An accelerator without code for these shapes, where nothing can make it or it cannot run them, gives way to the
  /// fallback that the file has for it; Unsupported where it has none. So does one that is gone: the run then begins
  /// anew, and ends with the device's Unavailable where it has none. The same bits whatever the options are.
  void run(std::span<const ops::View> inputs, ops::Results& outputs, const RunOptions& options = {});
  /// Runs on tensors and returns the outputs, with their shapes.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const RunOptions& options = {});
  std::vector<Tensor> run(std::span<const ops::View> inputs, const RunOptions& options = {});
  /// What a run does before it reads a value: throws what is wrong with the types and shapes of the inputs, and asks
  /// for the outputs whose shapes they give.
  void prepare(std::span<const ops::View> inputs, ops::Results& outputs);

  /// States for one more user. It may outlive the executable.
  std::unique_ptr<Session> session() const;
  /// The states of runs without a session.
  Session& own_session() { return own_; }

  /// The values of symbols that these inputs' shapes have. Throws as a run does.
  Bindings bindings_of(std::span<const ops::View> inputs) const;
  /// Bytes of the arena, for values of all symbols.
  int64_t arena_bytes(const Bindings& bindings);

  /// What is told of commands besides their times, for values of all symbols: those of the CPU, in the
  /// program's order; times are predicted for that processor.
  std::vector<CommandTime> described(const Bindings& bindings, const kernels::Machine& machine);

  /// Plans runs for the example's sizes and for all that there is code for, and runs none. Throws what is found.
  void verify() const;

 private:
  std::shared_ptr<const LoadedProgram> loaded() const;
  /// `around` null: this executable tells its notices itself.
  std::shared_ptr<const BoundPhase> bound_for(size_t phase, const Bindings& bindings, Executable* around = nullptr,
                                              Fallback fallback = Fallback::where_needed);
  std::shared_ptr<const BoundPhase> fallen_back(const BoundPhase& incomplete, const Executable& teller,
                                                const std::string& refused) const;
  std::shared_ptr<const LoadedProgram> specialized(int32_t body, size_t phase, const Bindings& bindings,
                                                   std::string& refused);
  std::unique_ptr<Context> context_for(std::span<const ops::View> inputs, const RunOptions& options);
  Admission admit(const RunOptions& options);

  const int threads_;
  const int32_t body_;
  std::unique_ptr<FairSemaphore> admissions_;  // null: no bound
  bool refuse_ = false;
  // Never held while a specializer, a notice or an image's owner is copied or dies: those may wait for a lock of the
  // caller's, such as Python's, whose holder may wait for this one.
  mutable std::mutex mutex_;
  std::mutex specializing_;
  std::shared_ptr<const LoadedProgram> loaded_;
  const size_t output_count_;
  Session own_;                                                      // of runs without one
  std::vector<std::list<std::shared_ptr<const BoundPhase>>> bound_;  // of every phase, most recently used first
  std::vector<std::list<std::shared_ptr<const BoundPhase>>> away_;   // likewise, with every fallback that there is
  std::unique_ptr<ContextPool> pool_;
  std::shared_ptr<const Specializer> specializer_;
  std::shared_ptr<const Notice> notice_;
};

}  // namespace hetnn::runtime
