// Legalization of several copies of one graph: what was found for one serves the others. Internal to passes.
#pragma once

#include <memory>
#include <vector>

#include "hetnn/passes/legalize.h"

namespace hetnn::passes {

/// `oracle` and `options` must outlive it; nodes may be excluded from one graph to the next.
class Legalizer {
 public:
  /// InvalidModel as check_disabled_rules.
  Legalizer(const Oracle& oracle, const LegalizeOptions& options, const std::vector<Symbol>& symbols);
  ~Legalizer();
  Legalizer(const Legalizer&) = delete;
  Legalizer& operator=(const Legalizer&) = delete;

  /// As `legalize`.
  std::vector<report::RewriteRow> run(ir::Graph& graph);
  /// By name, of all graphs so far.
  std::vector<OutOfRange> out_of_range() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hetnn::passes
