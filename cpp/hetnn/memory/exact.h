// Exact search for an assignment below a capacity.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "hetnn/memory/order_fit.h"
#include "hetnn/memory/problem.h"

namespace hetnn::memory {

enum class ExactOutcome { found, infeasible, gave_up };

struct ExactResult {
  ExactOutcome outcome = ExactOutcome::gave_up;
  std::vector<int64_t> offsets;  // when found
  int64_t nodes = 0;
};

/// How often each buffer was among those for whose sake a search had to turn back; later searches weigh more. The next
/// search places such buffers earlier (Boussemart et al., "Boosting systematic search by weighting constraints", ECAI
/// 2004).
class Blame {
 public:
  explicit Blame(int buffers) : of_(static_cast<size_t>(buffers)) {}
  void add(int buffer) { of_[static_cast<size_t>(buffer)] += step_; }
  /// Before each search.
  void next_search() {
    step_ *= 1.05;
    if (step_ < 1e100) return;
    for (double& each : of_) each /= step_;
    step_ = 1;
  }
  /// Of each buffer, the largest being 1, and none below 0.05.
  std::vector<double> weights() const {
    const double most = of_.empty() ? 0 : *std::max_element(of_.begin(), of_.end());
    std::vector<double> out(of_.size(), 1);
    for (size_t k = 0; most > 0 && k < out.size(); ++k) out[k] = 0.05 + 0.95 * of_[k] / most;
    return out;
  }

 private:
  std::vector<double> of_;
  double step_ = 1;
};

/// Depth-first search, for at most 4096 buffers, over canonical assignments: buffers are placed bottom-up, in
/// increasing (offset, rank), each resting on another one or on 0. `rank` orders the candidates of equal offset. Gives
/// up after `max_nodes` placements or when `stop` says so. `infeasible` is a proof.
///
/// Source of the canonical form and of the section bound: Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
/// Hardware-Accelerated Machine Learning", ASPLOS 2023.
ExactResult search_exact(const std::vector<Buffer>& buffers, const ConflictGraph& graph, const std::vector<int>& rank,
                         int64_t capacity_bytes, int64_t max_nodes, Blame& blame, const std::function<bool()>& stop);

}  // namespace hetnn::memory
