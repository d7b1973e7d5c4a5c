// A value is written over another one where its writer is the last to read that.
#include "hetnn/runtime/in_place.h"

#include <algorithm>
#include <map>
#include <vector>

namespace hetnn::runtime {
namespace {

// The moments of the last subprogram, by the memory that they read and write.
class Uses {
 public:
  Uses(const std::vector<Moment>& moments, const Views& views) : moments_(moments), views_(views) {}

  // Whether nothing reads a buffer's memory behind a moment, nor in that one by another name.
  bool ends(int32_t buffer, size_t moment) const {
    const auto reads = [&](const Moment& each) {
      return std::ranges::any_of(each.inputs, [&](int32_t id) { return id >= 0 && views_.holder(id) == buffer; });
    };
    return std::none_of(moments_.begin() + static_cast<ptrdiff_t>(moment) + 1, moments_.end(), reads) &&
           std::ranges::all_of(moments_[moment].inputs,
                               [&](int32_t id) { return id < 0 || id == buffer || views_.holder(id) != buffer; });
  }
  // Whether no other buffer is written to a buffer's memory.
  bool is_alone(int32_t buffer) const {
    return std::ranges::all_of(moments_, [&](const Moment& moment) {
      return std::ranges::all_of(moment.outputs,
                                 [&](int32_t id) { return id == buffer || views_.holder(id) != buffer; });
    });
  }

 private:
  const std::vector<Moment>& moments_;
  const Views& views_;
};

// Of what lies in one buffer's memory: the subprograms that use it, and the last moment of the phase that reads it.
struct Span {
  size_t first_step, last_step;
  int64_t last_read = -1;
};

std::map<int32_t, Span> spans_of(const BoundPhase& phase, const Views& views) {
  std::map<int32_t, Span> out;
  int64_t at = 0;
  for (size_t k = phase.phase().begin; k < phase.phase().end; ++k) {
    if (!phase.code(k)) continue;
    for (const Moment& moment : phase.executors[k - phase.phase().begin]->moments()) {
      const auto use = [&](int32_t id) -> Span& {
        Span& span = out.emplace(views.holder(id), Span{k, k}).first->second;
        span.last_step = k;
        return span;
      };
      for (const int32_t id : moment.inputs) {
        if (id >= 0) use(id).last_read = at;
      }
      for (const int32_t id : moment.outputs) use(id);
      ++at;
    }
  }
  return out;
}

}  // namespace

Views lay_out(const BoundPhase& phase, const std::function<bool(int32_t)>& has_place, bool ordered) {
  Views out(phase.buffers, has_place);
  const size_t begin = phase.phase().begin, end = phase.phase().end;
  for (size_t k = begin; k < end; ++k) {
    if (!phase.code(k)) continue;
    for (const BufferView& view : phase.code(k)->views()) out.add(view);
  }
  const Views copied = out;
  const std::map<int32_t, Span> spans = spans_of(phase, copied);
  const auto bytes = [&](int32_t id) { return phase.buffers[static_cast<size_t>(id)].size_bytes; };
  int64_t before = 0;  // moments of the subprograms that were looked at
  for (size_t k = begin; k < end; ++k) {
    if (!phase.code(k)) continue;
    const std::vector<Moment> moments = phase.executors[k - begin]->moments();
    for (const Overwrite& each : phase.code(k)->overwrites()) {
      const int32_t memory = copied.holder(each.of);
      if (out.holder(each.buffer) != each.buffer || has_place(each.buffer) || has_place(memory) ||
          bytes(each.buffer) != bytes(each.of) || bytes(each.of) != bytes(memory))
        continue;
      const Span& span = spans.at(memory);
      const bool ends = span.last_read == before + static_cast<int64_t>(each.moment) &&
                        (ordered || (span.first_step == k && span.last_step == k)) &&
                        std::ranges::all_of(moments[each.moment].inputs, [&](int32_t id) {
                          return id < 0 || id == each.of || copied.holder(id) != memory;
                        });
      if (ends) out.move(each.buffer, memory);
    }
    before += static_cast<int64_t>(moments.size());
  }
  return out;
}

StatesInPlace find_states_in_place(const BoundPhase& phase, const Views& views, const memory::Liveness& order) {
  const program::Program& program = phase.program();
  StatesInPlace out{.states = std::vector<bool>(program.states.size())};
  const size_t begin = phase.phase().begin, end = phase.phase().end;
  if (program.states.empty() || begin > 0 || end < program.subprograms.size() || begin == end) return out;
  const size_t last = end - 1;
  const BoundCode* const code = phase.code(last);
  for (size_t k = begin; k < last; ++k) {
    if (!order.before(static_cast<int>(k - begin), static_cast<int>(last - begin))) return out;
  }
  if (!code) return out;
  const std::vector<Moment> moments = phase.executors[last - begin]->moments();
  const Uses uses(moments, views);
  const size_t sure_from = code->sure_from();
  for (const Overwrite& each : code->overwrites()) {
    const auto state = std::ranges::find_if(
        program.states, [&](const program::State& s) { return s.output == each.buffer && s.input == each.of; });
    if (each.moment < sure_from || state == program.states.end() || !uses.is_alone(each.buffer) ||
        !uses.ends(each.of, each.moment))
      continue;
    out.states[static_cast<size_t>(state - program.states.begin())] = true;
    out.unstopped_from = std::min(out.unstopped_from, each.moment);
  }
  return out;
}

}  // namespace hetnn::runtime
