// The general processor: runs every operator that names a kernel.
#pragma once

#include <memory>

#include "hetnn/backends/backend.h"

namespace hetnn::backends {

std::unique_ptr<Backend> make_cpu_backend(const DeviceSpec& spec);

}  // namespace hetnn::backends
