// From a partition of the nodes into parts to a draft: exports settled, parts ordered, neighbours on the general
// processor joined. Internal to the partitioner.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/plan/partition/strategies/instance.h"

namespace hetnn::plan {

/// `part_of` numbers the parts so that every edge goes to the same or a later part. Colours may differ within a part:
/// it is then cut into runs of one colour. Trapped nodes that would leave their device move away, and what remains of
/// their part is cut again where it must be. Parts of the general processor that stand side by side are joined.
Draft draft_from_parts(const Instance& instance, std::vector<int32_t> part_of, std::vector<int32_t> colour);

/// Moves the trapped nodes whose consumers are not all in their own part, consumers first; the number moved. With
/// `whole_parts`, every trapped node of such a part moves.
int32_t move_trapped(const Instance& instance, const std::vector<int32_t>& part_of, std::vector<int32_t>& colour,
                     bool whole_parts);

/// After so many rounds of moving single nodes, every trapped node of an unsettled part moves.
inline constexpr int32_t kGentleRounds = 8;

/// Cuts parts into runs of one colour and numbers them along the edges.
void refine_by_colour(const Instance& instance, const std::vector<int32_t>& colour, std::vector<int32_t>& part_of);

}  // namespace hetnn::plan
