// What was asked of a version of a network and how long it took: counted, summed over processes, and shown as the
// protocol's statistics and as Prometheus' text.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hetnn::serve {

enum class Outcome { success, invalid, unavailable, cancelled, failed };
inline constexpr std::array<std::string_view, 5> kOutcomes = {"success", "invalid", "unavailable", "cancelled",
                                                              "failed"};
enum class Part { success, fail, queue, compute_input, compute_infer, compute_output };
inline constexpr std::array<std::string_view, 6> kParts = {"success",       "fail",          "queue",
                                                           "compute_input", "compute_infer", "compute_output"};

/// How often and for how many ns, together.
using Taken = std::pair<int64_t, int64_t>;
/// How many lie at or below each bound and above the one before, the last beyond all; and their sum.
using Histogram = std::pair<std::vector<int64_t>, double>;

/// Counts that are only added to, so that those of several processes can be summed.
struct Counted {
  Counted();
  std::array<Taken, kParts.size()> parts = {};
  std::map<int64_t, Taken> batches;  // runs by their inferences
  std::array<int64_t, kOutcomes.size()> outcomes = {};
  int64_t inferences = 0;
  int64_t last_ms = 0;  // of the clock on the wall; the latest, where others are sums
  Histogram request, queue, batch;
  std::map<std::string, double> busy_s;  // of devices

  void add(const Counted& more);
};

/// Of one version in one process. Thread-safe. Times are of the steady clock.
class Counters {
 public:
  /// A request of so many inferences that succeeded now.
  void answered(int64_t begun_ns, int64_t queue_ns, int64_t run_ns, int64_t inferences);
  /// A request that ended otherwise now.
  void refused(int64_t begun_ns, Outcome outcome);
  /// One run, of that many inferences, and how long its devices worked.
  void executed(int64_t inferences, int64_t run_ns, const std::vector<std::pair<std::string, double>>& busy_us);
  Counted counted() const;

 private:
  mutable std::mutex mutex_;
  Counted counted_;
};

/// A row of the statistics extension, as JSON.
std::string statistics_json(std::string_view network, std::string_view version, const Counted& counted);

/// All in Prometheus' text format, by network and version. `pending`: requests that wait or run.
std::string prometheus(const std::map<std::pair<std::string, std::string>, Counted>& counted, int64_t pending);

}  // namespace hetnn::serve
