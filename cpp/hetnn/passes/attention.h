// Attention as the layers that it consists of.
#pragma once

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// scaled_dot_product_attention(q, k, v) = matmul(softmax(matmul(q scale, k turned)), v), where k and v have as many
/// heads as q: before a network is quantized for an accelerator that has softmax. A mask of booleans adds kHides to
/// what it hides; a row that it hides altogether has no shares, as in attention. So does a constant mask of reals that
/// are either 0 or hide, and one of moderate reals is added; other masks stay in attention.
void attention_to_products(ir::Graph& graph);

}  // namespace hetnn::passes
