// Attention as the layers that it consists of.
#pragma once

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// scaled_dot_product_attention(q, k, v) = matmul(softmax(matmul(q scale, k turned)), v), where k and v have as many
/// heads as q and there is no mask: before a network is quantized for an accelerator that has softmax.
void attention_to_products(ir::Graph& graph);

}  // namespace hetnn::passes
