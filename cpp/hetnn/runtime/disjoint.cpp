// Sorted by where they begin, whoever meets another meets the one before that reaches furthest.
#include "hetnn/runtime/disjoint.h"

#include <algorithm>
#include <vector>

#include "hetnn/base/error.h"

namespace hetnn::runtime {
namespace {

// As many memories are compared with one another sooner than sorted.
constexpr size_t kFew = 8;

bool meet(const Memory& a, const Memory& b) {
  return a.bytes > 0 && b.bytes > 0 && a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

bool are_disjoint(std::span<const Memory> outputs, std::span<const Memory> inputs) {
  for (size_t k = 0; k < outputs.size(); ++k) {
    const auto meets = [&](const Memory& other) { return meet(outputs[k], other); };
    if (std::ranges::any_of(outputs.first(k), meets) || std::ranges::any_of(inputs, meets)) return false;
  }
  return true;
}

}  // namespace

void refuse_overlap(std::span<const Memory> outputs, std::span<const Memory> inputs) {
  if (outputs.size() + inputs.size() <= kFew && are_disjoint(outputs, inputs)) return;
  struct Range {
    const std::byte* begin;
    const std::byte* end;
    bool output;
    size_t number;
  };
  std::vector<Range> ranges;
  ranges.reserve(outputs.size() + inputs.size());
  const auto add = [&](std::span<const Memory> list, bool output) {
    for (size_t k = 0; k < list.size(); ++k) {
      if (list[k].bytes > 0) ranges.push_back({list[k].begin, list[k].begin + list[k].bytes, output, k});
    }
  };
  add(outputs, true);
  add(inputs, false);
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const Range* reaching = nullptr;         // of all so far
  const Range* reaching_output = nullptr;  // of the outputs so far
  for (const Range& range : ranges) {
    const Range* other = range.output ? reaching : reaching_output;
    if (other != nullptr && range.begin < other->end) {
      const Range& out = range.output ? range : *other;
      const Range& met = range.output ? *other : range;
      throw InvalidModel(text("out[", out.number, "] shares memory with ", met.output ? "out[" : "input ", met.number,
                              met.output ? "]" : "", ". Give it memory of its own."));
    }
    if (reaching == nullptr || range.end > reaching->end) reaching = &range;
    if (range.output && (reaching_output == nullptr || range.end > reaching_output->end)) reaching_output = &range;
  }
}

}  // namespace hetnn::runtime
