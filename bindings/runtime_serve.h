// What the bindings of requests and of queues share.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hetnn/serve/inference.h"

namespace hetnn {

/// Outputs of a run, in the network's order, as Python hands them from the queue to the writer.
struct Outputs {
  std::vector<Tensor> tensors;
};

/// A request with the form that it came in and will be answered in, and its bytes, from which another process reads it.
struct Request : serve::Inference {
  bool grpc = false;
  pybind11::object body;  // bytes or a bytearray
  std::optional<int64_t> head_bytes;
};

/// Keeps the object alive; any thread may let go of it.
std::shared_ptr<const void> kept_alive(const pybind11::object& object);

}  // namespace hetnn
