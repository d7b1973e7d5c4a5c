// The `cost` strategy: minimum cuts and every other plan as candidates, the cheapest by the full objective, then local
// search.
#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/strategies/budget.h"
#include "hetnn/plan/partition/strategies/expansion.h"
#include "hetnn/plan/partition/strategies/local_search.h"
#include "hetnn/plan/partition/strategies/runs.h"
#include "hetnn/plan/partition/strategies/strategies.h"

namespace hetnn::plan {
namespace {

/// Up to this size more starting points are tried; the bounds count work, so that plans do not depend on the clock.
constexpr int32_t kSmall = 400;
constexpr int32_t kMedium = 4000;
constexpr int32_t kExpansionSweeps = 4;
constexpr int32_t kPriceSteps = 16;
constexpr double kLaunchesThatMatter = 0.01;
constexpr double kRelativeSlack = 1e-9;

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// What `expand` minimizes, for given colours.
double weighted_cost_us(const Instance& instance, const CutWeights& weights, const std::vector<int32_t>& colour) {
  double total = colours_cost_us(instance, colour);
  if (weights.crossing_us > 0) {
    std::vector<int32_t> stamp(index(instance.device_count), -1);
    for (int32_t v = 0; v < instance.size; ++v) {
      for (const int32_t c : instance.consumers(v)) {
        const int32_t d = colour[index(c)];
        if (d == colour[index(v)] || stamp[index(d)] == v) continue;
        stamp[index(d)] = v;
        total += weights.crossing_us;
      }
    }
  }
  if (!weights.byte_price_us.empty()) {
    const std::vector<double> load = device_loads(instance, colour);
    for (size_t d = 0; d < load.size(); ++d) total += load[d] * weights.byte_price_us[d];
  }
  return total;
}

/// A problem in which all accelerators are one: each node takes its fastest, transfers between them are free. What it
/// costs at least, the real problem costs too.
Instance one_accelerator(const Instance& instance) {
  Instance merged = instance;
  merged.device_count = 2;
  merged.trapped.clear();
  merged.walled_in.clear();
  merged.time_us.assign(index(instance.size) * 2, kUnsupported);
  for (int32_t v = 0; v < instance.size; ++v) {
    double& fastest = merged.time_us[index(v) * 2 + 1];
    merged.time_us[index(v) * 2] = instance.time(v, 0);
    for (int32_t d = 1; d < instance.device_count; ++d) fastest = std::min(fastest, instance.time(v, d));
  }
  merged.launch_us = {instance.launch_us[0], kUnsupported};
  merged.latency_us.assign(4, kUnsupported);
  merged.us_per_byte.assign(4, kUnsupported);
  for (int32_t d = 1; d < instance.device_count; ++d) {
    const auto lower = [&](size_t to, size_t from) {
      merged.latency_us[to] = std::min(merged.latency_us[to], instance.latency_us[from]);
      merged.us_per_byte[to] = std::min(merged.us_per_byte[to], instance.us_per_byte[from]);
    };
    merged.launch_us[1] = std::min(merged.launch_us[1], instance.launch_us[index(d)]);
    lower(1, index(d));
    lower(2, index(d) * index(instance.device_count));
  }
  return merged;
}

class CostPlanner {
 public:
  CostPlanner(const Instance& instance, CostTrace& trace) : instance_(instance), trace_(trace) {}

  Draft run(bool local_search) {
    std::vector<int32_t> home = cpu_only_colours(instance_);
    attempt([&] { settle_exports(instance_, home); });
    const bool two = instance_.device_count == 2;
    std::vector<int32_t> cut = home;
    if (two) {
      trace_.cut_us = expand(instance_, {}, 1, cut, &left_us_);
    } else if (instance_.device_count > 2) {
      trace_.cut_us = expand_all({}, cut);
    }
    bound(cut);
    consider("cut", cut);
    consider("take-all", take_all_colours(instance_));
    consider("cpu-only", cpu_only_colours(instance_));
    if (proven()) return std::move(best_.front().draft);

    consider_cuts_with_launches(home, cut);
    if (instance_.any_budget && !budgets_kept(instance_, cut)) consider_priced_cuts(home);
    consider_strategies();
    if (!local_search || proven()) return std::move(best_.front().draft);

    const size_t starts = instance_.size <= kSmall ? best_.size() : 1;
    const size_t before = best_.size();
    for (size_t k = 0; k < std::min(starts, before); ++k) {
      Draft draft = best_[k].draft;
      const double cost = improve(instance_, draft, best_[k].cost_us);
      if (cost < best_[k].cost_us) found_.push_back({cost, std::move(draft)});
    }
    for (Found& found : found_) keep("local search", found.cost_us, std::move(found.draft));
    Found all{best_.front().cost_us, {}};
    if (try_all_colourings(instance_, all.draft, all.cost_us) && !all.draft.colour.empty())
      keep("all colourings", all.cost_us, std::move(all.draft));
    return std::move(best_.front().draft);
  }

 private:
  struct Found {
    double cost_us;
    Draft draft;
  };

  /// Alpha-expansion: every device in turn takes what it gains, until none gains.
  double expand_all(const CutWeights& weights, std::vector<int32_t>& colour) {
    double cost = weighted_cost_us(instance_, weights, colour);
    int32_t without_gain = 0;
    for (int32_t step = 0; without_gain < instance_.device_count && step < kExpansionSweeps * instance_.device_count;
         ++step) {
      // The general processor has everything at the start, so it goes last.
      const int32_t alpha = (step + 1) % instance_.device_count;
      std::vector<int32_t> trial = colour;
      expand(instance_, weights, alpha, trial);
      const double reached = weighted_cost_us(instance_, weights, trial);
      if (reached < cost - 1e-9 * (1 + cost)) {
        cost = reached;
        colour = std::move(trial);
        without_gain = 0;
      } else {
        ++without_gain;
      }
    }
    return cost;
  }

  /// Least node times and transfers of any plan, and the launches that no plan can do without.
  void bound(const std::vector<int32_t>& cut) {
    if (instance_.device_count == 1) {
      trace_.cut_us = colours_cost_us(instance_, cut);
      trace_.lower_bound_us = trace_.cut_us + (instance_.size > 0 ? instance_.launch_us[0] : 0);
      return;
    }
    double mixed = trace_.cut_us;
    double accelerator_launch = instance_.launch_us[1];
    if (instance_.device_count > 2) {
      const Instance merged = one_accelerator(instance_);
      std::vector<int32_t> colour(index(merged.size));
      for (int32_t v = 0; v < merged.size; ++v) colour[index(v)] = merged.allowed(v, 0) ? 0 : 1;
      mixed = expand(merged, {}, 1, colour);
      accelerator_launch = merged.launch_us[1];
    }
    // One device alone pays one launch; several pay at least two, and two accelerators alone no less than the cut.
    double bound = mixed + accelerator_launch + (instance_.device_count == 2 ? instance_.launch_us[0] : 0);
    if (instance_.device_count > 2) {
      double second = instance_.launch_us[0];
      std::vector<double> launches(instance_.launch_us.begin() + 1, instance_.launch_us.end());
      std::sort(launches.begin(), launches.end());
      second = std::min(second, launches[1]);
      bound = mixed + launches[0] + second;
    }
    for (int32_t d = 0; d < instance_.device_count; ++d) {
      double alone = instance_.launch_us[index(d)];
      for (int32_t v = 0; v < instance_.size; ++v) alone += instance_.time(v, d);
      bound = std::min(bound, alone);
    }
    trace_.lower_bound_us = instance_.size > 0 ? bound : 0;
  }

  bool proven() const {
    return !best_.empty() && best_.front().cost_us <= trace_.lower_bound_us + 1e-9 * (1 + trace_.lower_bound_us);
  }

  /// Runs one way to a plan; a way that leads nowhere is remembered in case all do.
  template <typename Attempt>
  void attempt(const Attempt& way) {
    try {
      way();
    } catch (const Unsupported&) {
      if (!failure_) failure_ = std::current_exception();
    } catch (const DoesNotFit&) {
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void consider(const std::string& name, std::vector<int32_t> colour) {
    attempt([&] { consider_colours(name, std::move(colour)); });
  }

  void consider_colours(const std::string& name, std::vector<int32_t> colour) {
    const Clusters clusters = settle_colours(instance_, colour);
    consider_draft(name, draw_runs(instance_, clusters, std::move(colour), RunGoal::cheapest));
  }

  void consider_draft(const std::string& name, Draft draft) {
    const double cost = draft_cost_us(instance_, draft);
    keep(name, cost, std::move(draft));
  }

  /// A plan as another strategy drew it, and its colours drawn anew: the cheaper one, the new one when they are
  /// equal.
  void consider_both(const std::string& name, Draft draft) {
    attempt([&] { consider_drawn_anew(name, std::move(draft)); });
  }

  void consider_drawn_anew(const std::string& name, Draft draft) {
    const double cost = draft_cost_us(instance_, draft);
    trace_.candidates.push_back({name, cost});
    Found drawn{kUnsupported, {}};
    // The strategy's own subgraphs may be valid where its colours cannot be drawn: then they stay as they are.
    attempt([&] {
      std::vector<int32_t> colour = draft.colour;
      const Clusters clusters = settle_colours(instance_, colour);
      drawn.draft = draw_runs(instance_, clusters, std::move(colour), RunGoal::cheapest);
      drawn.cost_us = draft_cost_us(instance_, drawn.draft);
    });
    if (drawn.cost_us <= cost) {
      keep(name + ", drawn anew", drawn.cost_us, std::move(drawn.draft));
    } else {
      keep(name, cost, std::move(draft), false);
    }
  }

  void keep(const std::string& name, double cost, Draft draft, bool record = true) {
    if (record) trace_.candidates.push_back({name, cost});
    size_t at = 0;
    while (at < best_.size() && best_[at].cost_us <= cost) ++at;
    if (at > 0 && best_[at - 1].cost_us == cost) return;
    best_.insert(best_.begin() + static_cast<std::ptrdiff_t>(at), Found{cost, std::move(draft)});
    const size_t most = instance_.size <= kSmall ? 3 : 1;
    if (best_.size() > most) best_.pop_back();
  }

  /// What a plan costs at least in which every node that may be exported is on its fastest accelerator: topological,
  /// depth and take-all all give such plans, since only trapped nodes leave theirs.
  double take_all_bound_us() const {
    const std::vector<int32_t> colour = take_all_colours(instance_);
    const auto fixed = [&](int32_t v) { return !instance_.is_trapped(v, colour[index(v)]); };
    std::vector<int32_t> stamp(index(instance_.device_count), -1);
    double total = 0;
    for (int32_t v = 0; v < instance_.size; ++v) {
      if (!fixed(v)) {
        double least = kUnsupported;
        for (int32_t d = 0; d < instance_.device_count; ++d) least = std::min(least, instance_.time(v, d));
        total += least;
        continue;
      }
      total += instance_.time(v, colour[index(v)]);
      for (const int32_t c : instance_.consumers(v)) {
        const int32_t d = colour[index(c)];
        if (d == colour[index(v)] || stamp[index(d)] == v || !fixed(c)) continue;
        stamp[index(d)] = v;
        total += instance_.transfer(v, colour[index(v)], d);
      }
    }
    return total;
  }

  /// What any plan of `merge` costs at least, launches left out: it keeps components whole, and edges of unlimited
  /// capacity between their nodes carry what the minimum cut left at the source of one to what it left at the sink of
  /// another.
  double merge_bound_us() const {
    if (left_us_.empty() || !instance_.trapped.empty()) return 0;
    const std::vector<int32_t> component_of = merge_components(instance_);
    struct Left {
      double source_us = 0, sink_us = 0;
    };
    std::vector<Left> left(component_of.size());
    for (size_t v = 0; v < component_of.size(); ++v) {
      Left& here = left[index(component_of[v])];
      (left_us_[v] > 0 ? here.source_us : here.sink_us) += std::abs(left_us_[v]);
    }
    double bound = trace_.cut_us;
    for (const Left& here : left) bound += std::min(here.source_us, here.sink_us);
    return bound * (1 - kRelativeSlack);
  }

  void consider_strategies() {
    const bool islands = instance_.any_connected;
    const bool may_win = best_.empty() || instance_.any_budget || take_all_bound_us() < best_.front().cost_us;
    // The colours of take-all and cpu-only were drawn in the cheapest way already; with two colours that is the best
    // there is, unless subgraphs must be connected.
    if (may_win && islands) {
      attempt([&] { consider_both("topological", plan_topological(instance_, TopologicalOrder::min)); });
    }
    if (may_win && (islands || instance_.device_count > 2)) {
      attempt([&] { consider_both("topological order=index", plan_topological(instance_, TopologicalOrder::index)); });
    }
    if (may_win && (islands || instance_.device_count > 2 || !instance_.trapped.empty() || instance_.any_budget)) {
      attempt([&] { consider_both("depth", plan_depth(instance_)); });
    }
    if (islands)
      attempt([&] { consider_draft("cpu-only", draft_from_colours(instance_, cpu_only_colours(instance_))); });
    const auto wanted = [&](double at_least_us) {
      return instance_.any_budget || best_.empty() || at_least_us < best_.front().cost_us;
    };
    if (wanted(merge_bound_us())) {
      attempt([&] {
        for_each_merge_plan(instance_, wanted, [&](const std::string& name, const std::function<Draft()>& build) {
          attempt([&] { consider_both(name, build()); });
        });
      });
    }
    if (best_.empty() && failure_) std::rethrow_exception(failure_);
  }

  /// Cuts in which every transfer carries a share of the launches: the share they have in the plain cut and, on small
  /// problems, fixed ones. A visit to an accelerator goes in and out, so half a launch a crossing is a lone visit's.
  void consider_cuts_with_launches(const std::vector<int32_t>& home, const std::vector<int32_t>& cut) {
    const double launch = *std::max_element(instance_.launch_us.begin(), instance_.launch_us.end());
    if (launch <= 0 || instance_.device_count == 1 || best_.empty()) return;
    const double plain = colours_cost_us(instance_, cut);
    const double crossings = weighted_cost_us(instance_, {1, {}}, cut) - plain;
    std::vector<double> crossing_us;
    const double launches = trace_.candidates.front().cost_us - plain;
    // Shares of launches that hardly matter would only repeat the plain cut.
    if (crossings > 0 && launches > (instance_.size > kMedium ? kLaunchesThatMatter : 0) * plain)
      crossing_us.push_back(launches / crossings);
    if (instance_.size <= kMedium) crossing_us.insert(crossing_us.end(), {0.5 * launch, 0.25 * launch, launch});
    for (const double share_us : crossing_us) {
      if (share_us <= 0) continue;
      std::vector<int32_t> colour = home;
      if (instance_.device_count == 2) {
        expand(instance_, {share_us, {}}, 1, colour);
      } else {
        expand_all({share_us, {}}, colour);
      }
      consider(text("cut with ", share_us, " us of launches a crossing"), std::move(colour));
    }
  }

  /// Cuts under a price for each byte on the devices that are over budget, found by bisection.
  void consider_priced_cuts(const std::vector<int32_t>& home) {
    double low = 0;
    double high = 0;
    for (int32_t v = 0; v < instance_.size; ++v) {
      const double weight = instance_.weight_bytes(v);
      for (int32_t d = 0; d < instance_.device_count && weight > 0; ++d) {
        if (instance_.allowed(v, d)) high = std::max(high, (instance_.time(v, d) + 1) / weight);
      }
    }
    high *= static_cast<double>(instance_.device_count) + 1;
    for (int32_t step = 0; step < kPriceSteps && high > 0; ++step) {
      const double price = (low + high) / 2;
      CutWeights weights{0, std::vector<double>(index(instance_.device_count), 0)};
      for (int32_t d = 0; d < instance_.device_count; ++d) {
        if (instance_.problem->devices[index(d)].budget_bytes >= 0) weights.byte_price_us[index(d)] = price;
      }
      std::vector<int32_t> colour = home;
      if (instance_.device_count == 2) {
        expand(instance_, weights, 1, colour);
      } else {
        expand_all(weights, colour);
      }
      const bool fits = budgets_kept(instance_, colour);
      consider(text("cut at ", price, " us a byte"), std::move(colour));
      (fits ? high : low) = price;
    }
  }

  const Instance& instance_;
  CostTrace& trace_;
  /// The cheapest drafts, cheapest first.
  std::vector<Found> best_;
  std::vector<Found> found_;
  std::exception_ptr failure_;
  /// With two devices: what the minimum cut left at the terminals of each node.
  std::vector<double> left_us_;
};

}  // namespace

Draft plan_cost(const Instance& instance, bool local_search, CostTrace& trace) {
  return CostPlanner(instance, trace).run(local_search);
}

}  // namespace hetnn::plan
