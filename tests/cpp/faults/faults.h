// Faults on request: allocations, threads, mappings and writes of this program fail when a test says so.
#pragma once

#include <cstdint>

namespace hetnn::faults {

/// While it lives, the n-th allocation of this thread from now on fails, and every n-th after it.
class FailingAllocations {
 public:
  explicit FailingAllocations(int64_t nth);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;
  /// How many failed.
  int64_t failed() const;
};

/// Blocks that operator new gave and that are not given back.
int64_t live_blocks();

// While they are true. `writes` gives a write a few bytes of what it asks for, and no room after `room_bytes`.
inline bool no_threads = false;
inline bool no_mappings = false;
inline bool short_writes = false;
inline int64_t room_bytes = 0;

}  // namespace hetnn::faults
