// An inference in gRPC's messages, by the numbers of fields in python/hetnn/serve/open_inference.proto.
#pragma once

#include "hetnn/serve/inference.h"

namespace hetnn::serve {

/// The inference in a ModelInferRequest. InvalidModel when contents disagree with what describes them.
Inference read_grpc(const Bytes& message);

/// The ModelInferResponse, whose tensors are raw; those in shared memory are only described.
Written write_grpc(const Inference& inference, std::string_view version, const Bound& bound,
                   std::span<const Tensor> outputs);

}  // namespace hetnn::serve
