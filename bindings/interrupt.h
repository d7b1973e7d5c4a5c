// Ctrl-C in long calls: the work of the compiler and the allocator ends with what Python's handler raises.
#pragma once

#include <pybind11/pybind11.h>

#include "hetnn/base/interrupt.h"

namespace hetnn {

/// Releases the GIL, and takes it now and then to let Python handle signals.
class LongCall {
 public:
  LongCall()
      : scope_([] {
          const pybind11::gil_scoped_acquire gil;
          if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
        }) {}

 private:
  pybind11::gil_scoped_release release_;
  InterruptScope scope_;
};

}  // namespace hetnn
