// The steps of cascades: how many rows of each layer a step computes, and how long they are needed.
#include <algorithm>
#include <limits>

#include "hetnn/backends/npu/schedule.h"

namespace hetnn::backends::scheduling {
namespace {

class Cascade {
 public:
  Cascade(const Network& network, const std::vector<Home>& homes, const Group& group, int64_t most_steps)
      : network_(network), homes_(homes), group_(group) {
    const Layer& last = layer(group.count - 1);
    whole_steps_ = (last.out.h + group.rows - 1) / group.rows;
    steps_ = std::min(whole_steps_, most_steps);
    find_needs();
    std::reverse(entry_order_.begin(), entry_order_.end());
    find_lags();
  }

  Stripes run() {
    int64_t most_lag = 0;
    for (const int64_t lag : lags_) most_lag = std::max(most_lag, lag);
    std::vector<int64_t> done(group_.count), stored(group_.count);
    std::map<const ir::Value*, int64_t> loaded;
    const int64_t end = steps_ + most_lag + group_.ahead;
    for (int64_t step = 0; step < end; ++step) {
      for (const ir::Value* value : entry_order_) {
        const std::vector<int64_t>& needs = entries_.at(value);
        const int64_t at = std::min(step - entry_lag(value) + group_.ahead, steps_ - 1);
        if (at < 0 && step > 0) continue;
        const int64_t need = needs[static_cast<size_t>(std::max<int64_t>(at, 0))];
        int64_t& rows = loaded[value];
        if (need > rows) add({Event::Kind::load, 0, value, rows, need - rows});
        rows = std::max(rows, need);
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
        if (leaves(k) && ready > stored[k]) {
          add({Event::Kind::store, group_.first + k, layer(k).output, stored[k], ready - stored[k]});
          stored[k] = ready;
        }
      }
    }
    find_rings();
    return std::move(out_);
  }

 private:
  const Layer& layer(size_t k) const { return network_.layers()[group_.first + k]; }
  void add(const Event& event) { out_.events.push_back(event); }
  bool is_home(const ir::Value& value) const { return scheduling::is_home(network_, homes_, value); }
  // Whether the layer's result is stored to DRAM. What is joined was stored in its parts.
  bool leaves(size_t k) const {
    const ir::Value& value = *layer(k).output;
    return layer(k).form != Form::view && !is_home(value) && !is_inside(network_.storage(value), group_);
  }

  void find_needs() {
    needs_.assign(group_.count, std::vector<int64_t>(static_cast<size_t>(steps_)));
    std::map<const ir::Value*, size_t> writer;
    for (size_t k = 0; k < group_.count; ++k) writer[layer(k).output] = k;
    for (size_t k = group_.count; k-- > 0;) {
      const Layer& l = layer(k);
      std::vector<int64_t>& need = needs_[k];
      const bool last = k + 1 == group_.count, read = read_.contains(l.output);
      const bool outside = !is_inside(network_.storage(*l.output), group_);
      for (int64_t step = 0; step < steps_; ++step) {
        int64_t& rows = need[static_cast<size_t>(step)];
        if (last)
          rows = std::min((step + 1) * group_.rows, l.out.h);
        else if (!read)
          rows = std::min((l.out.h * (step + 1) + whole_steps_ - 1) / whole_steps_, l.out.h);
        if (outside && step + 1 == whole_steps_) rows = l.out.h;
      }
      for (size_t input = 0; input < l.inputs.size(); ++input) {
        const ir::Value* value = l.inputs[input];
        const auto written = writer.find(value);
        std::vector<int64_t>* into = nullptr;
        if (written != writer.end()) {
          into = &needs_[written->second];
          read_[value] = true;
        } else if (!is_home(*value)) {
          if (!entries_.contains(value)) entry_order_.push_back(value);
          into = &entries_[value];
          into->resize(static_cast<size_t>(steps_));
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
  }

  // Behind another engine a layer works one step later, so that neither waits for the other.
  void find_lags() {
    lags_.assign(group_.count, 0);
    for (size_t k = 0; k < group_.count; ++k) {
      for (size_t before = 0; before < k; ++before) {
        for (const ir::Value* input : layer(k).inputs) {
          if (layer(before).output != input) continue;
          const bool crosses = group_.ahead > 0 && layer(before).engine() != layer(k).engine() &&
                               layer(before).form != Form::view && layer(k).form != Form::view;
          lags_[k] = std::max(lags_[k], lags_[before] + (crosses ? 1 : 0));
        }
      }
    }
  }
  int64_t entry_lag(const ir::Value* value) const {
    int64_t out = std::numeric_limits<int64_t>::max();
    for (size_t k = 0; k < group_.count; ++k) {
      if (std::find(layer(k).inputs.begin(), layer(k).inputs.end(), value) != layer(k).inputs.end())
        out = std::min(out, lags_[k]);
    }
    return out;
  }

  // A ring holds, whenever rows are written, all from the first that is still read to the last written.
  void find_rings() {
    std::map<size_t, int64_t> first_read;  // by frame, from the events behind
    const auto rings = [&](const ir::Value& value) { return !is_home(value); };
    for (auto at = out_.events.rbegin(); at != out_.events.rend(); ++at) {
      const Event& event = *at;
      const bool view = event.kind == Event::Kind::compute && network_.layers()[event.layer].form == Form::view;
      if (event.kind != Event::Kind::store && !view && rings(*event.value)) {
        const size_t frame = network_.part(*event.value).frame;
        const auto read = first_read.find(frame);
        const int64_t begin = read == first_read.end() ? event.first : std::min(read->second, event.first);
        int64_t& rows = out_.ring_rows[frame];
        rows = std::max(rows, event.first + event.count - begin);
      }
      const auto reads = [&](const ir::Value& value, int64_t begin) {
        if (!rings(value)) return;
        const auto [read, added] = first_read.try_emplace(network_.part(value).frame, begin);
        if (!added) read->second = std::min(read->second, begin);
      };
      if (event.kind == Event::Kind::store) reads(*event.value, event.first);
      if (event.kind != Event::Kind::compute || view) continue;
      const Layer& l = network_.layers()[event.layer];
      for (size_t input = 0; input < l.inputs.size(); ++input)
        reads(*l.inputs[input], l.rows_read(input, event.first, event.count).begin);
    }
  }

  const Network& network_;
  const std::vector<Home>& homes_;
  const Group& group_;
  int64_t whole_steps_ = 0, steps_ = 0;
  std::vector<std::vector<int64_t>> needs_;  // of each layer, rows of its result that are there behind each step
  std::map<const ir::Value*, std::vector<int64_t>> entries_;
  std::vector<const ir::Value*> entry_order_;
  std::map<const ir::Value*, bool> read_;  // by layers of the group
  std::vector<int64_t> lags_;
  Stripes out_;
};

}  // namespace

Stripes stripes_of(const Network& network, const std::vector<Home>& homes, const Group& group, int64_t most_steps) {
  return Cascade(network, homes, group, most_steps).run();
}

}  // namespace hetnn::backends::scheduling
