// The general processor: runs every operator that names a kernel.
#pragma once

#include <memory>

#include "hetnn/backends/backend.h"

namespace hetnn::backends {

/// Speeds of kernel families, from which times are predicted: max(work / speed, bytes / bandwidth) + overhead.
struct CpuSpeeds {
  double macs_per_us = 80e3;         // convolutions and matrix products
  double narrow_macs_per_us = 10e3;  // those with little reuse: depthwise, few channels
  double flops_per_us = 8e3;         // elementwise arithmetic
  double bytes_per_us = 20e3;        // memory
  double kernel_us = 0.6;            // a kernel's barrier and dispatch
  double launch_us = 3;              // a parallel region and the caller's work
};

std::unique_ptr<Backend> make_cpu_backend(const DeviceSpec& spec);

}  // namespace hetnn::backends
