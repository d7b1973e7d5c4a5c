// Layers of reals between conversions as layers of integers.
#pragma once

#include "hetnn/passes/canonical/integers_of.h"
#include "hetnn/passes/rule.h"

namespace hetnn::passes::canonical {

/// Whether a layer that accelerators have, or a function of one value, can have a result of integers of that type, i8
/// or i16: it reads reals of integers of the type, i8 weights, whose scales are those of filters, or numbers; weights
/// and biases of normalizations are constants.
bool reads_integers(const ir::Node& layer, DType result);

/// Whether a convolution or linear layer reads reals of i8 with i8 weights as above, and a bias that is a constant or
/// the reals of one.
bool sums_integers(const ir::Node& layer);

/// What such a layer reads, as integers; a bias as i32 at the scale of the sums. Empty where a bias is too large for
/// it.
std::vector<ir::Value*> integer_inputs(const ir::Node& layer, DType result, Build& build);

/// The layer on these, at the scale of a result.
ir::Value* on_integers(const ir::Node& layer, std::vector<ir::Value*> inputs, const ops::Quant& result, Build& build);

}  // namespace hetnn::passes::canonical
