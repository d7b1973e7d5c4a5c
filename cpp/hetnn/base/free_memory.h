// Memory that is free but still the process's.
#pragma once

namespace hetnn {

/// Gives back to the system what was freed between blocks that are in use: the C library keeps it for later. Takes
/// milliseconds; nothing where the library has no such call.
void return_free_memory();

}  // namespace hetnn
