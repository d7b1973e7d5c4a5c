// Settling, refining, ordering and joining of parts.
#include "hetnn/plan/partition/strategies/parts.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/problem/prefetch.h"
#include "hetnn/plan/partition/strategies/budget.h"
#include "hetnn/plan/partition/strategies/lists.h"
#include "hetnn/plan/partition/strategies/runs.h"

namespace hetnn::plan {
namespace {

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// An order of the parts that stays with the general processor, then with any one device, as long as it can.
std::vector<int32_t> order_parts(const Instance& instance, const std::vector<int32_t>& part_of,
                                 const std::vector<int32_t>& device_of_part) {
  const size_t parts = device_of_part.size();
  std::vector<int32_t> begin(parts + 1, 0), missing(parts, 0);
  // Edges between parts, along the nodes; where they lead is asked for early.
  const auto for_each_edge = [&](const auto& visit) {
    constexpr size_t kAhead = 16;
    for (size_t v = 0; v < part_of.size(); ++v) {
      for (auto i = index(instance.out_begin[v]); i < index(instance.out_begin[v + 1]); ++i) {
        prefetch(&part_of[index(later(instance.out_nodes, i, kAhead))]);
        const int32_t reader = part_of[index(instance.out_nodes[i])];
        if (reader != part_of[v]) visit(part_of[v], reader);
      }
    }
  };
  for_each_edge([&](int32_t part, int32_t reader) {
    ++begin[index(part) + 1];
    ++missing[index(reader)];
  });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<int32_t> readers(static_cast<size_t>(begin[parts]));
  std::vector<int32_t> fill(begin.begin(), begin.end() - 1);
  for_each_edge([&](int32_t part, int32_t reader) { readers[index(fill[index(part)]++)] = reader; });
  // Ready parts by device, each taken first in, first out.
  std::vector<std::vector<int32_t>> ready(static_cast<size_t>(instance.device_count));
  std::vector<size_t> head(ready.size(), 0);
  for (size_t k = 0; k < parts; ++k) {
    if (missing[k] == 0) ready[index(device_of_part[k])].push_back(static_cast<int32_t>(k));
  }
  std::vector<int32_t> number(parts, -1);
  int32_t count = 0;
  for (size_t d = 0; count < static_cast<int32_t>(parts);) {
    if (head[d] == ready[d].size()) {
      d = 0;
      while (d < ready.size() && head[d] == ready[d].size()) ++d;
      HETNN_ASSERT(d < ready.size(), "the parts close a ring");
    }
    const auto part = index(ready[d][head[d]++]);
    number[part] = count++;
    for (int32_t i = begin[part]; i < begin[part + 1]; ++i) {
      const auto reader = index(readers[static_cast<size_t>(i)]);
      if (--missing[reader] == 0) ready[index(device_of_part[reader])].push_back(static_cast<int32_t>(reader));
    }
    // One accelerator part at a time; whatever it freed for the general processor comes next.
    if (d != 0 && head[0] != ready[0].size()) d = 0;
  }
  return number;
}

}  // namespace

void refine_by_colour(const Instance& instance, const std::vector<int32_t>& colour, std::vector<int32_t>& part_of) {
  std::vector<int32_t> run(part_of.size(), 0);
  constexpr size_t kAhead = 16;
  for (size_t v = 0; v < part_of.size(); ++v) {
    for (auto i = index(instance.in_begin[v]); i < index(instance.in_begin[v + 1]); ++i) {
      prefetch(&part_of[index(later(instance.in_nodes, i, kAhead))]);
      const auto u = index(instance.in_nodes[i]);
      if (part_of[u] == part_of[v]) run[v] = std::max(run[v], run[u] + (colour[u] != colour[v] ? 1 : 0));
    }
  }
  // Most parts have one run of one colour and stay whole; only the nodes of the others are sorted.
  using Key = std::pair<int32_t, int32_t>;
  const auto key = [&](int32_t v) { return Key(run[index(v)], colour[index(v)]); };
  const auto parts = static_cast<int32_t>(part_count(part_of));
  constexpr Key kEmpty{-1, -1};
  constexpr Key kMixed{-2, -2};
  std::vector<Key> key_of(static_cast<size_t>(parts), kEmpty);
  std::vector<int32_t> mixed;
  for (int32_t v = 0; v < instance.size; ++v) {
    Key& known = key_of[index(part_of[index(v)])];
    if (known == kEmpty) known = key(v);
    if (known != key(v)) known = kMixed;
  }
  for (int32_t v = 0; v < instance.size; ++v) {
    if (key_of[index(part_of[index(v)])] == kMixed) mixed.push_back(v);
  }
  std::stable_sort(mixed.begin(), mixed.end(), [&](int32_t a, int32_t b) {
    return std::tuple(part_of[index(a)], key(a)) < std::tuple(part_of[index(b)], key(b));
  });
  std::vector<int32_t> number(static_cast<size_t>(parts), -1);
  std::vector<int32_t> number_of_mixed;
  number_of_mixed.reserve(mixed.size());
  int32_t count = 0;
  size_t next = 0;
  for (int32_t part = 0; part < parts; ++part) {
    if (key_of[index(part)] == kEmpty) continue;
    if (key_of[index(part)] != kMixed) {
      number[index(part)] = count++;
      continue;
    }
    const size_t first = next;
    for (; next < mixed.size() && part_of[index(mixed[next])] == part; ++next) {
      if (next > first && key(mixed[next]) != key(mixed[next - 1])) ++count;
      number_of_mixed.push_back(count);
    }
    ++count;
  }
  for (int32_t& k : part_of) k = number[index(k)];
  for (size_t k = 0; k < mixed.size(); ++k) part_of[index(mixed[k])] = number_of_mixed[k];
}

int32_t move_trapped(const Instance& instance, const std::vector<int32_t>& part_of, std::vector<int32_t>& colour,
                     bool whole_parts) {
  if (instance.trapped.empty()) return 0;
  const auto settled = [&](int32_t v) {
    const auto consumers = instance.consumers(v);
    return !consumers.empty() && std::all_of(consumers.begin(), consumers.end(), [&](int32_t c) {
      return part_of[index(c)] == part_of[index(v)] && colour[index(c)] == colour[index(v)];
    });
  };
  std::vector<uint8_t> cleared;
  if (whole_parts) {
    cleared.assign(part_of.size(), 0);
    for (int32_t v = 0; v < instance.size; ++v) {
      if (instance.is_trapped(v, colour[index(v)]) && !settled(v)) cleared[index(part_of[index(v)])] = 1;
    }
  }
  int32_t moved = 0;
  for (int32_t v = instance.size - 1; v >= 0; --v) {
    if (!instance.is_trapped(v, colour[index(v)])) continue;
    if (settled(v) && (!whole_parts || cleared[index(part_of[index(v)])] == 0)) continue;
    const int32_t to = fallback_device(instance, colour, v);
    if (to < 0) {
      throw Unsupported(text("node '", instance.id(v), "': its result may not leave '",
                             instance.problem->devices[index(colour[index(v)])].name,
                             "', its consumers are not all in its subgraph, and no other device can run it. Make it "
                             "exportable or let the general processor support it."));
    }
    colour[index(v)] = to;
    ++moved;
  }
  return moved;
}

Draft draft_from_parts(const Instance& instance, std::vector<int32_t> part_of, std::vector<int32_t> colour) {
  Draft draft;
  if (instance.size == 0) return draft;
  fit_budgets(instance, colour);
  refine_by_colour(instance, colour, part_of);
  for (int32_t round = 0;; ++round) {
    HETNN_ASSERT(round < 2 * kGentleRounds + instance.size, "trapped nodes do not settle");
    const int32_t moved = move_trapped(instance, part_of, colour, round >= kGentleRounds);
    if (moved + fit_budgets(instance, colour) == 0) break;
    refine_by_colour(instance, colour, part_of);
  }
  std::vector<int32_t> device_of_part;
  for (size_t v = 0; v < part_of.size(); ++v) {
    if (index(part_of[v]) >= device_of_part.size()) device_of_part.resize(index(part_of[v]) + 1, 0);
    device_of_part[index(part_of[v])] = colour[v];
  }
  const std::vector<int32_t> number = order_parts(instance, part_of, device_of_part);
  std::vector<int32_t> device_at(number.size());
  for (size_t k = 0; k < number.size(); ++k) device_at[index(number[k])] = device_of_part[k];
  std::vector<int32_t> subgraph_at(number.size());
  for (size_t k = 0; k < device_at.size(); ++k) {
    const bool joins = k > 0 && device_at[k] == 0 && device_at[k - 1] == 0;
    draft.subgraph_count += joins ? 0 : 1;
    subgraph_at[k] = draft.subgraph_count - 1;
  }
  draft.colour = std::move(colour);
  draft.subgraph_of.resize(draft.colour.size());
  for (size_t v = 0; v < part_of.size(); ++v) draft.subgraph_of[v] = subgraph_at[index(number[index(part_of[v])])];
  if (instance.any_connected) split_islands(instance, draft);
  return draft;
}

}  // namespace hetnn::plan
