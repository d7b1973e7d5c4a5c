// How long a thread runs at a stretch.
#pragma once

#include <cstdint>

namespace hetnn {

/// For the calling thread, not for those that it makes. From Linux 6.12 on, of two threads the one that asks for less
/// goes before the other as soon as it wakes up, and what each gets in all stays as it is (`sched_runtime` of
/// sched_setattr(2)). Without effect on other systems, and on threads that are not scheduled as most are.
void ask_for_slices(uint64_t ns);

}  // namespace hetnn
