// A program loaded, with its code read, and bound to the values of its symbols: concrete shapes and arena offsets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hetnn/base/turns.h"
#include "hetnn/runtime/executor.h"

namespace hetnn::runtime {

/// A program and the executors of its subprograms, in order.
struct LoadedProgram {
  program::Program program;
  std::vector<std::unique_ptr<const Executor>> executors;
  std::map<std::string, std::shared_ptr<Turns>, std::less<>> queues;  // of device instances that serve one at a time
};

/// Reads and checks all code. InvalidModel naming `called` and the field. The devices are those of `before`, which may
/// be null.
std::shared_ptr<const LoadedProgram> load(program::Program program, const std::string& called,
                                          const LoadedProgram* before = nullptr);

/// The subprograms of one device instance, which run one after another.
struct Lane {
  std::vector<int> steps;
  int64_t scratch_bytes = 0;
};

/// Immutable once made; shared by all runs of the same shapes. Keeps its program alive.
struct BoundProgram {
  std::shared_ptr<const LoadedProgram> loaded;
  Bindings bindings;
  int threads = 1;
  std::vector<BoundBuffer> buffers;
  std::vector<std::unique_ptr<const BoundCode>> codes;  // of the subprograms; null where there is none for these sizes
  std::vector<Lane> lanes;
  std::vector<Turns*> queues;  // of the subprograms' devices; null: it serves many visits at once
  bool overlaps = false;       // some subprograms of different devices may run at once
  int64_t arena_bytes = 0;

  const program::Program& program() const { return loaded->program; }
};

/// Binds a program. Throws InvalidModel when a shape comes out negative, and what devices throw for sizes they cannot
/// serve.
std::shared_ptr<const BoundProgram> bind(std::shared_ptr<const LoadedProgram> loaded, const Bindings& bindings,
                                         int threads);

}  // namespace hetnn::runtime
