// Work for threads of the process's own, and what forks do to them.
#pragma once

#include <functional>

namespace hetnn {

/// Runs `job`, which throws nothing, on a thread that is idle or made for it; jobs beyond the most threads wait in
/// order. Threads stay, and sleep while there is nothing to do. After a fork the child has threads of its own; jobs
/// that the parent had begun or queued are the parent's alone.
void run_in_background(std::function<void()> job);

/// How many forks lie between this process and the one that loaded the library: what began under another number was
/// begun by threads that are not here.
int forks();

}  // namespace hetnn
