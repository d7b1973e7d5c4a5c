// What a kind of device brings to the runtime: reading its code, binding it to sizes, and visits to the device.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/fair_semaphore.h"
#include "hetnn/base/stop.h"
#include "hetnn/base/tensor.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/program/program.h"
#include "hetnn/runtime/event.h"
#include "hetnn/runtime/run_times.h"

namespace hetnn::runtime {

struct BoundBuffer {
  std::vector<int64_t> shape;
  kernels::TensorView view;
  int64_t size_bytes = 0;
  int64_t arena_offset_bytes = -1;  // arena buffers only
};

/// What a device says of its last visit.
struct DeviceTimes {
  int64_t cycles = 0;
  double simulated_us = 0;
};

/// Where every buffer of the program lies in a run; null where its size is not known yet.
using Addresses = std::span<std::byte* const>;

/// Told by visits to subprograms that define symbols: sizes as they come out of values, and memory for what has them.
class FoundSizes {
 public:
  virtual ~FoundSizes() = default;
  /// The value of a symbol, in its range.
  virtual void define(std::string_view symbol, int64_t value) = 0;
  /// Memory for an output buffer whose size depends on what was defined so far. InvalidModel unless `shape` is that of
  /// the buffer then.
  virtual std::byte* allocate(int32_t buffer, std::span<const int64_t> shape) = 0;
};

/// Devices whose turn a run has, that a run inside it need not wait for.
struct Held {
  const FairSemaphore* queue;
  const Held* others;  // null: there are no more
};

class Executable;

/// What a visit is started with. From the moment `unstopped_from` on, which is sure, it goes on whatever `stop` says,
/// and it gets there only where nothing before failed: it writes over what a later run needs.
struct Launch {
  std::vector<CommandTime>* commands = nullptr;      // null: commands are not timed
  const Stop* stop = nullptr;                        // asked between commands; null: the visit is not to be stopped
  FoundSizes* found = nullptr;                       // null: the subprogram defines no symbols
  const Held* held = nullptr;                        // for runs inside the visit
  Executable* around = nullptr;                      // which compiles for these, and tells their notices
  std::vector<BodyTimes>* bodies = nullptr;          // one for each loop that repeats a body; null: these are not timed
  std::chrono::steady_clock::time_point begin = {};  // of the run, which their times count from
  size_t unstopped_from = std::numeric_limits<size_t>::max();
  std::byte* arena = nullptr;  // in which scratch stands
};

/// A subprogram's memory on its device and all else that a visit needs, so that visits allocate nothing. Serves one
/// visit at a time: upload, start, download once the event is set. Where a visit did not end, its destructor waits.
class Visit {
 public:
  virtual ~Visit() = default;
  /// Of the memory that it holds.
  virtual int64_t bytes() const { return 0; }
  /// Hands over the inputs: copied, or read where they lie until the event is set.
  virtual void upload(Addresses addresses) = 0;
  /// Begins to compute, and sets `done` when the outputs may be downloaded: before it returns, or later. Throws what
  /// `launch.stop` does.
  virtual void start(const Launch& launch, Event& done) = 0;
  virtual void download(Addresses addresses) = 0;
  virtual DeviceTimes times() const { return {}; }
};

inline constexpr size_t kNoMoment = std::numeric_limits<size_t>::max();

/// The buffers in use at one moment of a subprogram; -1 stands for none.
struct Moment {
  std::span<const int32_t> inputs, outputs;
};

/// A buffer whose bytes stand in another's, from an offset on.
struct BufferView {
  int32_t buffer, of;
  int64_t offset_bytes;
};

/// An output of a moment that may lie just where an input of it does: nothing else of the moment reads that input.
struct Overwrite {
  size_t moment;
  int32_t buffer, of;
};

/// Code for fixed sizes. Immutable; serves many visits at once.
class BoundCode {
 public:
  virtual ~BoundCode() = default;
  /// Buffers that it would only copy out of others, in its order. Those that lie there when it runs it leaves as they
  /// are.
  virtual std::vector<BufferView> views() const { return {}; }
  virtual std::vector<Overwrite> overwrites() const { return {}; }
  /// The first moment from which on nothing fails, whatever the values, and all is brief: elementwise work.
  virtual size_t sure_from() const { return kNoMoment; }
  /// Bytes that it needs beside the buffers at each of its moments, in the arena; none behind the last that is told.
  virtual std::vector<int64_t> scratch_bytes() const { return {}; }
  /// What is told of its commands besides their times, predicted for that processor; of devices that have none
  /// nothing.
  virtual std::vector<CommandTime> described(const kernels::Machine& /*machine*/) const { return {}; }
  /// `scratch`: where in the arena those stand, which outlives the visit.
  virtual std::unique_ptr<Visit> open(std::span<const int64_t> scratch) const = 0;
};

/// What code is bound to: values of all symbols but those that it defines and those defined behind it. The buffers
/// outlive what is bound; those of sizes that are not known yet have rank 0.
struct Sizes {
  const Bindings& bindings;
  const std::vector<BoundBuffer>& buffers;
  int threads = 1;
};

/// The code of one subprogram, read and checked. Immutable.
class Executor {
 public:
  virtual ~Executor() = default;
  /// The subprogram's moments in order: buffers of the arena live from the first that names them to the last.
  virtual std::vector<Moment> moments() const = 0;
  /// Null when there is no code for these sizes. Throws what devices throw for what they cannot serve.
  virtual std::unique_ptr<const BoundCode> bind(const Sizes& sizes) const = 0;
  /// The sizes that there is code for, for messages.
  virtual std::vector<Bindings> bound_sizes() const { return {}; }
  /// Whether a device instance serves one visit after another, from all runs of an executable.
  virtual bool one_at_a_time() const { return true; }
};

struct LoadedProgram;
/// Those that calls repeat, by number.
using LoadedBodies = std::vector<std::shared_ptr<const LoadedProgram>>;

/// What an executor is loaded from. The program outlives the executor.
struct Load {
  const program::Program& program;
  const program::Subprogram& subprogram;
  std::string called;  // how messages call the subprogram
  const program::Code& code = subprogram.code;
  const LoadedBodies& bodies = {};  // that it may run
};

/// The executor of the kind that the code names; InvalidModel naming what is wrong with the code, or listing the kinds
/// there are.
std::unique_ptr<const Executor> load_executor(const Load& load);

/// Adds a kind besides those of runtime/executors/.
using ExecutorLoader = std::function<std::unique_ptr<const Executor>(const Load& load)>;
void register_executor(const std::string& kind, ExecutorLoader loader);
/// The kinds that run here, in the order of their names.
std::vector<std::string> executor_kinds();
/// Called with a kind that is not there, to add it. What it throws, loading ends with.
using ExecutorFinder = std::function<void(const std::string& kind)>;
void set_executor_finder(ExecutorFinder finder);

}  // namespace hetnn::runtime
