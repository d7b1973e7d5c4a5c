// Minimum cuts over colours: one move that lets every node keep its device or switch to one given device, done exactly.
// Internal to the partitioner.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/plan/partition/strategies/instance.h"

namespace hetnn::plan {

/// What the cut minimizes beside node times and transfers.
struct CutWeights {
  /// Added to every transfer: a share of the launches that come with it.
  double crossing_us = 0;
  /// Per device, or empty: a price for each byte of weights there.
  std::vector<double> byte_price_us;
};

/// Lets every node keep its colour or switch to `alpha` and takes the best of all those choices: a minimum s-t cut with
/// one vertex a node, capacities = times, and an auxiliary vertex for each value and device that may read it, so that a
/// value is moved once per device. Trapped nodes are tied to their consumers by edges that cannot be cut. Exact where
/// transfers from `alpha` cost no less than from elsewhere to a third device (always with two devices or equal links);
/// otherwise that saving is left out. Returns the value of the cut in microseconds. `left_us` receives, for each node
/// that had the choice, how much the flow that proves this value left of the price of switching (positive) or of that
/// of keeping (negative).
double expand(const Instance& instance, const CutWeights& weights, int32_t alpha, std::vector<int32_t>& colour,
              std::vector<double>* left_us = nullptr);

}  // namespace hetnn::plan
