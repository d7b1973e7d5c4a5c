// A program bound to the values of its symbols: concrete shapes, arena offsets, kernels made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hetnn/kernels/kernel.h"
#include "hetnn/program/program.h"

namespace hetnn::runtime {

struct BoundBuffer {
  std::vector<int64_t> shape;
  kernels::TensorView view;
  int64_t size_bytes = 0;
  int64_t arena_offset_bytes = -1;  // arena buffers only
};

struct BoundCommand {
  std::unique_ptr<const kernels::Kernel> kernel;
  const program::Command* command = nullptr;
  bool serial = false;
};

struct BoundSubprogram {
  const program::Subprogram* subprogram = nullptr;
  std::vector<BoundCommand> commands;            // of a cpu subprogram
  const program::NpuVariant* variant = nullptr;  // of an npu subprogram
};

/// Immutable once made; shared by all runs of the same shapes. Keeps its program alive.
struct BoundProgram {
  std::shared_ptr<const program::Program> program;
  Bindings bindings;
  int threads = 1;
  std::vector<BoundBuffer> buffers;
  std::vector<BoundSubprogram> subprograms;
  int64_t arena_bytes = 0;
  int64_t scratch_bytes = 0;
};

/// Binds `program`. Throws InvalidModel when a shape comes out negative, and what kernels throw for calls they cannot
/// serve. An npu subprogram without code for these bindings leaves its variant null.
std::shared_ptr<const BoundProgram> bind(std::shared_ptr<const program::Program> program, const Bindings& bindings,
                                         int threads);

}  // namespace hetnn::runtime
