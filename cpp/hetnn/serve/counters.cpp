// Counting requests, and their counts in Prometheus' text format.
#include "hetnn/serve/counters.h"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <span>
#include <sstream>

namespace hetnn::serve {
namespace {

constexpr double kSeconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0};
constexpr double kSizes[] = {1, 2, 4, 8, 16, 32, 64, 128};

void count(Histogram& histogram, std::span<const double> bounds, double value) {
  ++histogram.first[static_cast<size_t>(std::ranges::lower_bound(bounds, value) - bounds.begin())];
  histogram.second += value;
}

void add_to(Taken& taken, const Taken& more) {
  taken.first += more.first;
  taken.second += more.second;
}

void add_to(Histogram& histogram, const Histogram& more) {
  std::ranges::transform(histogram.first, more.first, histogram.first.begin(), std::plus<>());
  histogram.second += more.second;
}

int64_t since_ns(int64_t begun_ns) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - begun_ns;
}

int64_t wall_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void write_head(std::ostream& out, std::string_view name, std::string_view kind, std::string_view meaning) {
  out << "# HELP " << name << " " << meaning << "\n# TYPE " << name << " " << kind << "\n";
}

void write(std::ostream& out, std::string_view name, const std::string& labels, std::span<const double> bounds,
           const Histogram& histogram) {
  int64_t seen = 0;
  for (size_t k = 0; k < histogram.first.size(); ++k) {
    seen += histogram.first[k];
    out << name << "_bucket{" << labels << ",le=\"";
    if (k < bounds.size()) {
      out << bounds[k];
    } else {
      out << "+Inf";
    }
    out << "\"} " << seen << "\n";
  }
  out << name << "_sum{" << labels << "} " << histogram.second << "\n";
  out << name << "_count{" << labels << "} " << seen << "\n";
}

}  // namespace

Counted::Counted() {
  request.first.resize(std::size(kSeconds) + 1);
  queue.first.resize(std::size(kSeconds) + 1);
  batch.first.resize(std::size(kSizes) + 1);
}

void Counted::add(const Counted& more) {
  for (size_t k = 0; k < parts.size(); ++k) add_to(parts[k], more.parts[k]);
  for (const auto& [size, taken] : more.batches) add_to(batches[size], taken);
  for (size_t k = 0; k < outcomes.size(); ++k) outcomes[k] += more.outcomes[k];
  inferences += more.inferences;
  last_ms = std::max(last_ms, more.last_ms);
  add_to(request, more.request);
  add_to(queue, more.queue);
  add_to(batch, more.batch);
  for (const auto& [device, seconds] : more.busy_s) busy_s[device] += seconds;
}

void Counters::answered(int64_t begun_ns, int64_t queue_ns, int64_t run_ns, int64_t inferences) {
  const int64_t whole_ns = since_ns(begun_ns);
  const std::lock_guard lock(mutex_);
  ++counted_.outcomes[static_cast<size_t>(Outcome::success)];
  counted_.inferences += inferences;
  counted_.last_ms = wall_ms();
  const auto took = [&](Part part, int64_t ns) { add_to(counted_.parts[static_cast<size_t>(part)], {1, ns}); };
  took(Part::success, whole_ns);
  took(Part::queue, queue_ns);
  took(Part::compute_input, 0);
  took(Part::compute_infer, run_ns);
  took(Part::compute_output, std::max<int64_t>(whole_ns - queue_ns - run_ns, 0));
  count(counted_.request, kSeconds, static_cast<double>(whole_ns) * 1e-9);
  count(counted_.queue, kSeconds, static_cast<double>(queue_ns) * 1e-9);
}

void Counters::refused(int64_t begun_ns, Outcome outcome) {
  const int64_t whole_ns = since_ns(begun_ns);
  const std::lock_guard lock(mutex_);
  ++counted_.outcomes[static_cast<size_t>(outcome)];
  add_to(counted_.parts[static_cast<size_t>(Part::fail)], {1, whole_ns});
  count(counted_.request, kSeconds, static_cast<double>(whole_ns) * 1e-9);
}

void Counters::executed(int64_t inferences, int64_t run_ns,
                        const std::vector<std::pair<std::string, double>>& busy_us) {
  const std::lock_guard lock(mutex_);
  add_to(counted_.batches[inferences], {1, run_ns});
  count(counted_.batch, kSizes, static_cast<double>(inferences));
  for (const auto& [device, us] : busy_us) counted_.busy_s[device] += us * 1e-6;
}

Counted Counters::counted() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

std::string prometheus(const std::map<std::pair<std::string, std::string>, Counted>& counted, int64_t pending) {
  std::ostringstream out;
  out << std::setprecision(9);
  // Ids and versions hold nothing that a label would have to escape.
  const auto labels = [](const auto& key) { return "model=\"" + key.first + "\",version=\"" + key.second + "\""; };
  write_head(out, "hetnn_requests_total", "counter", "Requests by how they ended.");
  for (const auto& [key, each] : counted) {
    for (size_t k = 0; k < kOutcomes.size(); ++k)
      out << "hetnn_requests_total{" << labels(key) << ",outcome=\"" << kOutcomes[k] << "\"} " << each.outcomes[k]
          << "\n";
  }
  write_head(out, "hetnn_request_seconds", "histogram", "From a request's arrival to its answer.");
  for (const auto& [key, each] : counted) write(out, "hetnn_request_seconds", labels(key), kSeconds, each.request);
  write_head(out, "hetnn_queue_seconds", "histogram", "From a request's arrival to its run.");
  for (const auto& [key, each] : counted) write(out, "hetnn_queue_seconds", labels(key), kSeconds, each.queue);
  write_head(out, "hetnn_pending", "gauge", "Requests that wait or run.");
  out << "hetnn_pending " << pending << "\n";
  write_head(out, "hetnn_batch_size", "histogram", "Inferences of one run.");
  for (const auto& [key, each] : counted) write(out, "hetnn_batch_size", labels(key), kSizes, each.batch);
  write_head(out, "hetnn_device_busy_seconds_total", "counter", "Time that devices computed.");
  std::map<std::string, double> busy_s;
  for (const auto& [key, each] : counted) {
    for (const auto& [device, seconds] : each.busy_s) busy_s[device] += seconds;
  }
  for (const auto& [device, seconds] : busy_s)
    out << "hetnn_device_busy_seconds_total{device=\"" << device << "\"} " << seconds << "\n";
  return out.str();
}

}  // namespace hetnn::serve
