// Three subgraphs of a direct ring become one of the general processor.
#include <algorithm>
#include <set>
#include <span>

#include "hetnn/plan/partition/strategies/lists.h"
#include "hetnn/plan/partition/strategies/strategies.h"

namespace hetnn::plan {
namespace {

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// The parts, and those that read and feed each.
class PartGraph {
 public:
  PartGraph(const Instance& instance, const std::vector<int32_t>& part_of) : readers_(part_count(part_of)) {
    for (int32_t v = 0; v < instance.size; ++v) {
      for (const int32_t u : instance.inputs(v)) {
        const int32_t from = part_of[index(u)], to = part_of[index(v)];
        if (from != to) readers_[index(from)].insert(to);
      }
    }
  }
  const std::set<int32_t>& readers(int32_t part) const { return readers_[index(part)]; }
  bool reads(int32_t part, int32_t from) const { return readers_[index(from)].contains(part); }
  int32_t size() const { return static_cast<int32_t>(readers_.size()); }

 private:
  std::vector<std::set<int32_t>> readers_;
};

}  // namespace

void send_rings_home(const Instance& instance, const std::vector<int32_t>& part_of, std::vector<int32_t>& colour) {
  const PartGraph parts(instance, part_of);
  const NodeLists members = members_of(part_of);
  std::vector<int32_t> device(index(parts.size()), 0);
  for (size_t v = 0; v < part_of.size(); ++v)
    device[index(part_of[v])] = std::max(device[index(part_of[v])], colour[v]);
  const auto may_go_home = [&](int32_t part) {
    const std::span<const int32_t> nodes = members[index(part)];
    return std::all_of(nodes.begin(), nodes.end(), [&](int32_t v) { return instance.allowed(v, 0); });
  };
  const auto go_home = [&](int32_t part) {
    for (const int32_t v : members[index(part)]) colour[index(v)] = 0;
    device[index(part)] = 0;
  };
  for (int32_t first = 0; first < parts.size(); ++first) {
    for (const int32_t second : parts.readers(first)) {
      if (device[index(first)] == 0 || device[index(first)] != device[index(second)]) continue;
      for (const int32_t between : parts.readers(first)) {
        if (device[index(between)] == device[index(first)] || !parts.reads(second, between)) continue;
        if (!may_go_home(first) || !may_go_home(second) || !may_go_home(between)) continue;
        for (const int32_t part : {first, between, second}) go_home(part);
        break;
      }
    }
  }
}

}  // namespace hetnn::plan
