// What the bindings of requests and of queues share.
#pragma once

#include <string>
#include <vector>

#include "hetnn/serve/inference.h"

namespace hetnn {

/// Outputs of a run, in the network's order, as Python hands them from the queue to the writer.
struct Outputs {
  std::vector<Tensor> tensors;
};

}  // namespace hetnn
