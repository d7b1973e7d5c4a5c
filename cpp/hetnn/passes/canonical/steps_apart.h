// How far layers of integers may be from the layers of reals that they stand for, before both are rounded: in steps of
// the result, which is about the share of its integers that are then one apart.
#pragma once

#include "hetnn/ir/graph.h"

namespace hetnn::passes::canonical {

/// A layer between conversions: exact sums of products beside those of f32, and a bias that is rounded to the steps of
/// the sums. 0 for a layer that computes no sums: its type means the same arithmetic.
double steps_apart_of_sums(const ir::Node& layer, const ops::Quant& result);

/// Integers divided by a number of that size: those that lie halfway between two, one in so many.
double steps_apart_of_quotients(double divisor);

/// A quotient by a scale beside the product with its reciprocal.
double steps_apart_of_reciprocals();

}  // namespace hetnn::passes::canonical
