// A schedule as text that people read and edit.
//
//   value "conv1" scratchpad at=0 bytes=50176
//   cascade rows=4 ahead=1
//     layer "conv1"
//     layer "pool1"
//     parameters "conv1" at=131072 bytes=1216 depth=1
//     ring "conv1" at=65536 bytes=3584 depth=6
//   tiled rows=7 columns=7 filters=128 channels=512 filters_inside=0 overlaps=1
//     layer "conv2"
//     ...
//
// `value` says where a storage lies between groups; `bytes` is its size. A group is a cascade or tiled; its layers
// follow in the network's order, then its buffers: what for, whose, where, how many bytes each and how many of them.
// Where any `at` is left out, all places are found anew.
#pragma once

#include <string>
#include <string_view>

#include "hetnn/backends/npu/schedule.h"
#include "hetnn/npu/spec.h"

namespace hetnn::backends::scheduling {

std::string schedule_text(const Network& network, const Schedule& schedule);

/// How a group's layer is cut, in a few words: `tile` of reports.
std::string tile_text(const Group& group);

/// Reads it back for the same network, with its places. Throws InvalidModel naming line, layer, figure and limit for
/// text that is no schedule, layers that are unknown, left out or in another order, buffers that are too small or
/// overlap, and DoesNotFit for what lies beyond the scratchpad.
Schedule read_schedule(const npu::Spec& spec, const Network& network, std::string_view source);

}  // namespace hetnn::backends::scheduling
