// An inference in an HTTP body: JSON, with raw tensors behind it.
#pragma once

#include "hetnn/serve/inference.h"

namespace hetnn::serve {

/// With `head_bytes`, raw tensors follow that many bytes of JSON; else all is JSON. InvalidModel when sizes or contents
/// disagree with what describes them.
Inference read_http(std::string model, std::string version, const Bytes& body, std::optional<int64_t> head_bytes);

/// `outputs` are all of the network's; those in shared memory are only described.
Written write_http(const Inference& inference, std::string_view version, const Bound& bound,
                   std::span<const Tensor> outputs);

}  // namespace hetnn::serve
