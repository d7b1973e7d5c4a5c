// A program loaded, with its code read, and its phases bound to the values of its symbols: concrete shapes and arena
// offsets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/fair_semaphore.h"
#include "hetnn/runtime/executor.h"

namespace hetnn::runtime {

/// Subprograms [begin, end) whose sizes are all known when the first of them begins. Only the last defines symbols.
struct Phase {
  size_t begin = 0, end = 0;
};

/// Whether code for sizes that a device's own does not serve is taken.
enum class Fallback : uint8_t { never, where_needed, always };

/// Device instances that serve one run at a time.
using Queues = std::map<std::string, std::shared_ptr<FairSemaphore>, std::less<>>;

/// A program, the executors of its subprograms, in order, and its phases, which run one after another.
struct LoadedProgram {
  program::Program program;
  LoadedBodies bodies;
  std::vector<std::unique_ptr<const Executor>> executors;
  std::vector<std::unique_ptr<const Executor>> fallbacks;  // of the subprograms; null where one has none
  std::vector<Phase> phases;                               // one at least
  /// Of every buffer of the arena that is read in a later phase than it is written in, or whose size comes out of
  /// values: the last phase that uses it. -1 for the others, which live within one phase.
  std::vector<int> kept_until;
  Queues queues;
};

/// Reads and checks all code. InvalidModel naming `called` and the field. The devices are those of `before`, which may
/// be null.
std::shared_ptr<const LoadedProgram> load(program::Program program, const std::string& called,
                                          const LoadedProgram* before = nullptr);

/// The subprograms of one device instance, which run one after another.
using Lane = std::vector<int>;

/// States that have one block of memory, which a run writes over, and the moment of the last subprogram at which that
/// begins.
struct StatesInPlace {
  std::vector<bool> states;  // of every state, in the program's order
  size_t unstopped_from = kNoMoment;
};

/// A phase of a program, bound. Immutable once made; shared by all runs of the same shapes. Keeps its program alive.
struct BoundPhase {
  std::shared_ptr<const LoadedProgram> loaded;
  size_t number = 0;
  Bindings bindings;
  int threads = 1;
  std::vector<BoundBuffer> buffers;                     // those of known sizes
  std::vector<const Executor*> executors;               // of its subprograms: their own or the fallbacks
  std::vector<std::unique_ptr<const BoundCode>> codes;  // theirs; null where there is none for these sizes
  std::vector<Lane> lanes;
  std::vector<FairSemaphore*> queues;         // of the subprograms' devices; null: it serves many visits at once
  bool overlaps = false;                      // some subprograms of different devices may run at once
  int64_t arena_bytes = 0;                    // of buffers
  int64_t memory_bytes = 0;                   // with scratch, which stands among them and behind
  std::vector<std::vector<int64_t>> scratch;  // of each subprogram and moment, where it stands in the arena
  std::vector<int32_t> in_arena;              // buffers that live within the phase, in memory of their own
  std::vector<BufferView> views;              // buffers that lie in others
  std::vector<int32_t> kept;                  // buffers that it writes and later phases read, of sizes that are known
  std::vector<size_t> outputs;                // ports that it writes, of sizes that are known
  StatesInPlace in_place;

  const program::Program& program() const { return loaded->program; }
  const Phase& phase() const { return loaded->phases[number]; }
  const BoundCode* code(size_t subprogram) const { return codes[subprogram - phase().begin].get(); }
  bool falls_back(size_t subprogram) const {
    return executors[subprogram - phase().begin] == loaded->fallbacks[subprogram].get();
  }
};

/// Throws DoesNotFit when the machine has less memory than `what` would take.
void check_memory(int64_t bytes, std::string_view what);

/// Binds a phase, with values for all symbols that no subprogram from it on defines. Throws InvalidModel when a shape
/// comes out negative, and what devices throw for sizes they cannot serve.
std::shared_ptr<const BoundPhase> bind(std::shared_ptr<const LoadedProgram> loaded, size_t number,
                                       const Bindings& bindings, int threads, Fallback fallback = Fallback::never);

}  // namespace hetnn::runtime
