// Memory budgets of devices. Internal to the partitioner.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/plan/partition/strategies/instance.h"
#include "hetnn/plan/partition/strategies/runs.h"

namespace hetnn::plan {

/// Bytes of weights that colours place on each device.
std::vector<double> device_loads(const Instance& instance, const std::vector<int32_t>& colour);

/// Whether every device keeps its budget.
bool budgets_kept(const Instance& instance, const std::vector<int32_t>& colour);

/// Moves nodes away from devices that exceed their budget, those first that lose the least time per byte, until all
/// fit; the number moved. DoesNotFit naming the device when that is impossible.
int32_t fit_budgets(const Instance& instance, std::vector<int32_t>& colour);

/// Budgets and exports together: the clusters of colours that satisfy both.
Clusters settle_colours(const Instance& instance, std::vector<int32_t>& colour);

}  // namespace hetnn::plan
