// The steps of cascades: how many rows of each layer a step computes, and how long they are needed.
#include <algorithm>
#include <limits>

#include "hetnn/backends/npu/schedule.h"

namespace hetnn::backends::scheduling {
namespace {

class Cascade {
 public:
  Cascade(const Network& network, const std::vector<Home>& homes, const Group& group, int64_t most_steps)
      : network_(network), homes_(homes), group_(group), lags_(group.count), leaves_(group.count) {
    const Layer& last = layer(group.count - 1);
    whole_steps_ = (last.out.h + group.rows - 1) / group.rows;
    steps_ = std::min(whole_steps_, most_steps);
    find_needs();
    find_lags();
  }

  Stripes run() {
    int64_t most_lag = 0;
    for (const int64_t lag : lags_) most_lag = std::max(most_lag, lag);
    std::vector<int64_t> done(group_.count), stored(group_.count);
    const int64_t end = steps_ + most_lag + group_.ahead;
    out_.events.reserve(static_cast<size_t>(end) * (group_.count + entries_.size() + 1));
    for (int64_t step = 0; step < end; ++step) {
      for (Entry& entry : entries_) {
        const int64_t at = std::min(step - entry.lag + group_.ahead, steps_ - 1);
        if (at < 0 && step > 0) continue;
        const int64_t need = entry.needs[static_cast<size_t>(std::max<int64_t>(at, 0))];
        if (need > entry.loaded) add({Event::Kind::load, 0, entry.value, entry.loaded, need - entry.loaded});
        entry.loaded = std::max(entry.loaded, need);
      }
      for (size_t k = 0; k < group_.count; ++k) {
        const int64_t at = std::min(step - lags_[k], steps_ - 1);
        if (at < 0) continue;
        const int64_t need = needs_[k][static_cast<size_t>(at)], before = done[k];
        if (need > before) {
          add({Event::Kind::compute, group_.first + k, layer(k).output, before, need - before});
          done[k] = need;
        }
        // What the step before computed.
        const int64_t ready = group_.ahead > 0 && step + 1 < end ? before : done[k];
        if (leaves_[k] && ready > stored[k]) {
          add({Event::Kind::store, group_.first + k, layer(k).output, stored[k], ready - stored[k]});
          stored[k] = ready;
        }
      }
    }
    find_rings();
    return std::move(out_);
  }

 private:
  // A value that comes from outside.
  struct Entry {
    const ir::Value* value;
    std::vector<int64_t> needs;  // rows that are there for each step
    int64_t lag = 0, loaded = 0;
  };

  const Layer& layer(size_t k) const { return network_.layers()[group_.first + k]; }
  void add(const Event& event) { out_.events.push_back(event); }
  bool is_home(const ir::Value& value) const { return scheduling::is_home(network_, homes_, value); }
  // The layer of the group that writes a value; `count` for none.
  size_t writer(const ir::Value* value) const {
    size_t k = 0;
    while (k < group_.count && layer(k).output != value) ++k;
    return k;
  }
  Entry& entry(const ir::Value* value) {
    const auto at =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& other) { return other.value == value; });
    if (at != entries_.end()) return *at;
    return entries_.emplace_back(Entry{value, std::vector<int64_t>(static_cast<size_t>(steps_))});
  }

  void find_needs() {
    needs_.assign(group_.count, std::vector<int64_t>(static_cast<size_t>(steps_)));
    std::vector<uint8_t> read(group_.count);  // by layers of the group
    for (size_t k = group_.count; k-- > 0;) {
      const Layer& l = layer(k);
      std::vector<int64_t>& need = needs_[k];
      const bool last = k + 1 == group_.count, outside = !is_inside(network_.storage(*l.output), group_);
      leaves_[k] = l.form != Form::view && outside && !is_home(*l.output);
      for (int64_t step = 0; step < steps_; ++step) {
        int64_t& rows = need[static_cast<size_t>(step)];
        if (last)
          rows = std::min((step + 1) * group_.rows, l.out.h);
        else if (read[k] == 0)
          rows = std::min((l.out.h * (step + 1) + whole_steps_ - 1) / whole_steps_, l.out.h);
        if (outside && step + 1 == whole_steps_) rows = l.out.h;
      }
      for (size_t input = 0; input < l.inputs.size(); ++input) {
        const ir::Value* value = l.inputs[input];
        const size_t written = writer(value);
        std::vector<int64_t>* into = nullptr;
        if (written < group_.count) {
          into = &needs_[written];
          read[written] = 1;
        } else if (!is_home(*value)) {
          into = &entry(value).needs;
        }
        for (int64_t step = 0; into && step < steps_; ++step) {
          const int64_t rows = need[static_cast<size_t>(step)];
          if (rows == 0) continue;
          const Span span = l.rows_read(input, rows - 1, 1);
          int64_t& wanted = (*into)[static_cast<size_t>(step)];
          wanted = std::max(wanted, span.begin + span.count);
        }
      }
    }
    std::reverse(entries_.begin(), entries_.end());
  }

  // Behind another engine a layer works one step later, so that neither waits for the other.
  void find_lags() {
    for (size_t k = 0; k < group_.count; ++k) {
      for (const ir::Value* input : layer(k).inputs) {
        const size_t before = writer(input);
        if (before >= k) continue;
        const bool crosses = group_.ahead > 0 && layer(before).engine() != layer(k).engine() &&
                             layer(before).form != Form::view && layer(k).form != Form::view;
        lags_[k] = std::max(lags_[k], lags_[before] + (crosses ? 1 : 0));
      }
    }
    for (Entry& entry : entries_) {
      entry.lag = std::numeric_limits<int64_t>::max();
      for (size_t k = 0; k < group_.count; ++k) {
        if (std::find(layer(k).inputs.begin(), layer(k).inputs.end(), entry.value) != layer(k).inputs.end())
          entry.lag = std::min(entry.lag, lags_[k]);
      }
    }
  }

  // A ring holds, whenever rows are written, all from the first that is still read to the last written.
  void find_rings() {
    // By frame, from the events behind.
    std::vector<int64_t> first_read(network_.frames().size(), std::numeric_limits<int64_t>::max());
    std::vector<int64_t> ring_rows(network_.frames().size());
    const auto rings = [&](const ir::Value& value) { return !is_home(value); };
    for (auto at = out_.events.rbegin(); at != out_.events.rend(); ++at) {
      const Event& event = *at;
      const bool view = event.kind == Event::Kind::compute && network_.layers()[event.layer].form == Form::view;
      if (event.kind != Event::Kind::store && !view && rings(*event.value)) {
        const size_t frame = network_.part(*event.value).frame;
        const int64_t begin = std::min(first_read[frame], event.first);
        ring_rows[frame] = std::max(ring_rows[frame], event.first + event.count - begin);
      }
      const auto reads = [&](const ir::Value& value, int64_t begin) {
        if (!rings(value)) return;
        int64_t& first = first_read[network_.part(value).frame];
        first = std::min(first, begin);
      };
      if (event.kind == Event::Kind::store) reads(*event.value, event.first);
      if (event.kind != Event::Kind::compute || view) continue;
      const Layer& l = network_.layers()[event.layer];
      for (size_t input = 0; input < l.inputs.size(); ++input)
        reads(*l.inputs[input], l.rows_read(input, event.first, event.count).begin);
    }
    for (size_t frame = 0; frame < ring_rows.size(); ++frame) {
      if (ring_rows[frame] > 0) out_.ring_rows[frame] = ring_rows[frame];
    }
  }

  const Network& network_;
  const std::vector<Home>& homes_;
  const Group& group_;
  int64_t whole_steps_ = 0, steps_ = 0;
  // By layers of the group: rows of the result that are there behind each step, steps that it works behind the first,
  // and whether its result is stored to DRAM. What is joined was stored in its parts.
  std::vector<std::vector<int64_t>> needs_;
  std::vector<int64_t> lags_;
  std::vector<uint8_t> leaves_;
  std::vector<Entry> entries_;
  Stripes out_;
};

}  // namespace

Stripes stripes_of(const Network& network, const std::vector<Home>& homes, const Group& group, int64_t most_steps) {
  return Cascade(network, homes, group, most_steps).run();
}

}  // namespace hetnn::backends::scheduling
