// Local search on a draft by the full objective. Internal to the partitioner.
#pragma once

#include "hetnn/plan/partition/strategies/instance.h"

namespace hetnn::plan {

/// Recolours whole subgraphs, moves single nodes into subgraphs that run anyway, and on small problems tries every
/// change of one node and of two neighbours with subgraphs drawn anew; keeps what lowers the cost. The work is bounded
/// by a count, not by a clock, so that the same problem gives the same plan. Returns the cost reached.
double improve(const Instance& instance, Draft& draft, double cost_us);

/// Problems with no more colourings than this are solved by trying all of them.
inline constexpr double kMostColourings = 256;
/// The best of all colourings; only for instances that have few enough. False when there are too many.
bool try_all_colourings(const Instance& instance, Draft& best, double& best_cost_us);

}  // namespace hetnn::plan
