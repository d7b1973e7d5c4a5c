// Finds offsets for buffers with lifetimes: greedy orders, hill climbing, exact search.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetnn/memory/problem.h"

namespace hetnn::memory {

/// The largest sum of sizes (each rounded up to `alignment_bytes`) of the buffers alive at one moment: no assignment
/// has a lower peak.
int64_t lower_bound_bytes(const std::vector<Buffer>& buffers, int64_t alignment_bytes = 1);

/// The best of several fixed greedy orders; O(n^2), deterministic, never fails. For use while a program is being bound.
/// Throws InvalidModel on a negative size, a lifetime that ends before it begins, or a sum of sizes above 2^62.
/// `meetings` are pairs of buffers that conflict besides (Liveness::meetings).
Fit fit_greedy(const std::vector<Buffer>& buffers, int64_t alignment_bytes = 1, const Meetings& meetings = {});

/// How far `fit` goes.
struct FitOptions {
  int64_t alignment_bytes = 1;
  double seconds = 10.0;        // for climbing and exact search together
  bool heuristic_only = false;  // greedy orders and hill climbing, no exact search
};

/// What `fit` found: always a sound assignment of its own peak, which may be above the capacity.
struct FitResult {
  Fit fit;
  bool feasible = false;           // the peak is at most the capacity
  bool proven_infeasible = false;  // no assignment of at most the capacity exists
  int64_t lower_bound_bytes = 0;
  std::string method;  // greedy, climb or exact: what found `fit`
  int64_t nodes = 0;   // of the exact search
};

/// Looks for an assignment with a peak of at most `capacity_bytes`: greedy orders first, then hill climbing, then exact
/// search until the time is spent. With `heuristic_only` it lowers the peak as far as time allows. Which assignment is
/// found depends on elapsed time only when the limit is reached. Throws like fit_greedy.
FitResult fit(const std::vector<Buffer>& buffers, int64_t capacity_bytes, const FitOptions& options = {});

}  // namespace hetnn::memory
