// What each layer of an accelerator's subprograms takes, by the clock of the device itself.
#pragma once

#include <string>
#include <vector>

#include "hetnn/npu/layer_times.h"
#include "hetnn/program/program.h"

namespace hetnn::runtime {

/// One subprogram of an accelerator whose code says how long it takes.
struct DeviceLayers {
  size_t subprogram = 0;  // of the program
  double clock_hz = 0;
  double launch_us = 0;
  npu::Variant variant;  // that runs at these sizes
  npu::LayerTimes times;
};

/// Those of the program itself, not of its bodies, that have code for these sizes.
std::vector<DeviceLayers> device_layers(const program::Program& program, const Bindings& bindings);

}  // namespace hetnn::runtime
