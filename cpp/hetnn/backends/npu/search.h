// The schedule that takes least of those tried.
#pragma once

#include <cstdint>

#include "hetnn/backends/npu/schedule.h"
#include "hetnn/npu/spec.h"

namespace hetnn::backends::scheduling {

/// Cuts the layers into groups and decides which storages stay in the scratchpad between them: from boundary to
/// boundary, of all ways to the same storages only the cheapest goes on (after partial mappings, arXiv 2602.15166).
/// `packed`: the schedule of the same network at other sizes, whose filters and channels are kept where that fits, so
/// that packed weights are shared. Throws NodeDoesNotFit for a layer of which no tile fits.
Schedule find_schedule(const npu::Spec& spec, const Network& network, BestTiles& tiles,
                       const Schedule* packed = nullptr);

/// Schedules of one layer by itself of which one is about the best there is. Throws as find_schedule does.
std::vector<Schedule> schedules_alone(const npu::Spec& spec, const Network& network, BestTiles& tiles);

}  // namespace hetnn::backends::scheduling
