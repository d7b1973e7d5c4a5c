// How threads share the rows and columns of a result.
#pragma once

namespace hetnn::kernels {

/// So many shares of the rows by so many of the columns: thread t has share t % row_parts of the rows and t / row_parts
/// of the columns.
struct ThreadGrid {
  int row_parts = 1;
  int col_parts = 1;
};

/// The grid of least cost(grid), of rows alone where others cost as much.
template <typename Cost>
ThreadGrid thread_grid(int threads, const Cost& cost) {
  ThreadGrid best{threads, 1};
  double least = cost(best);
  for (int col_parts = 2; col_parts <= threads; ++col_parts) {
    if (threads % col_parts != 0) continue;
    const ThreadGrid grid{threads / col_parts, col_parts};
    if (const double its = cost(grid); its < least) {
      best = grid;
      least = its;
    }
  }
  return best;
}

/// Cycles that each thread waits for others because columns are shared: layers before and behind share rows, so that of
/// a row's elements, read or written, one thread writes some and others read them, and who writes such a line next must
/// wait until they have given it up. `bytes`: of all rows, read and written.
inline double waiting_cycles(ThreadGrid grid, double bytes) {
  // A line of 64 bytes in 25 cycles, on a Zen 4; what another has written itself costs no more than the third level.
  constexpr double kCyclesPerByte = 0.4;
  return bytes * (grid.col_parts - 1) / grid.col_parts / (grid.row_parts * grid.col_parts) * kCyclesPerByte;
}

}  // namespace hetnn::kernels
