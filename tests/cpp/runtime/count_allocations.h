// Counts what this test program allocates.
#pragma once

#include <cstdint>

/// Calls of operator new so far, by all threads.
int64_t allocations();
