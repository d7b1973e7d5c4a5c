// Measuring groups of n-ary layers, and remembering them.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <mutex>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/elementwise.h"
#include "hetnn/kernels/elementwise/nary.h"
#include "hetnn/kernels/elementwise/nary_ops.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kMost_bytes = 24 << 20;

struct Known {
  std::mutex mutex;
  std::map<std::string, int> groups;
};
Known& known() {
  static Known instance;
  return instance;
}

std::string name_of(const NaryLayer& layer) {
  const int log2 = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(layer.elems, 1) - 1));
  return text(layer.op, layer.weighted ? " weighted " : " ", layer.inputs, " x 2^", log2);
}

// The first pass joins `group` inputs, every other one as many with the result so far.
int passes_of(int inputs, int group) { return inputs <= group ? 1 : 1 + (inputs - group + group - 2) / (group - 1); }

// For each number of passes the least group: its passes are the most even.
std::vector<int> candidates(const NaryLayer& layer) {
  const int most = layer.op == "add" ? kMaxNaryGroup : kShortNaryGroup;
  std::vector<int> out = {2};
  for (int group = 3; group <= most; ++group)
    if (passes_of(layer.inputs, group) < passes_of(layer.inputs, out.back())) out.push_back(group);
  return out;
}

class Trial {
 public:
  explicit Trial(const NaryLayer& layer)
      : elems_(std::clamp<int64_t>(layer.elems, 1, kMost_bytes / 4 / (layer.inputs + 1))) {
    const TensorView view = TensorView::plain(DType::f32, std::span(&elems_, 1));
    const std::vector<TensorView> views(static_cast<size_t>(layer.inputs), view);
    for (const int group : candidates(layer)) {
      Params params = {{"op", layer.op}, {"group", int64_t{group}}};
      if (layer.weighted) params.set("coefficients", std::vector<double>(views.size(), 0.5));
      kernels_.push_back(make_nary({views, std::span(&view, 1), params}));
    }
    const auto bytes = static_cast<size_t>(elems_) * 4;
    for (size_t i = 0; i < views.size(); ++i) {
      // Bytes that are never written may all lie on one page of zeros, which memory would serve too well.
      std::byte* data = buffers_.emplace_back(bytes).data();
      for (size_t at = 0; at < bytes; at += 4096) data[at] = std::byte{1};
      inputs_.push_back(data);
    }
    output_ = buffers_.emplace_back(bytes).data();
  }

  size_t count() const { return kernels_.size(); }

  double run_us(size_t candidate) const {
    using Clock = std::chrono::steady_clock;
    SpinBarrier barrier(1);
    const auto start = Clock::now();
    // Short runs are repeated: the clock is no finer than some ten nanoseconds.
    const int repeats = elems_ < 4096 ? 16 : 1;
    for (int k = 0; k < repeats; ++k) kernels_[candidate]->run({0, 1, barrier, nullptr}, inputs_.data(), &output_);
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / repeats;
  }

 private:
  int64_t elems_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<AlignedBuffer> buffers_;
  std::vector<const std::byte*> inputs_;
  std::byte* output_ = nullptr;
};

}  // namespace

int fastest_nary_group(const NaryLayer& layer, double budget_us) {
  HETNN_ASSERT(layer.inputs >= 1 && layer.inputs <= kMaxNaryInputs && layer.elems >= 0, name_of(layer));
  const std::vector<int> groups = candidates(layer);
  if (groups.size() == 1) return groups.front();
  const Trial trial(layer);
  // Rounds over all candidates, so that a disturbance meets each of them; the lowest time of each counts. Whoever is
  // far behind after a round is out.
  std::vector<double> best(groups.size(), HUGE_VAL);
  double spent_us = 0;
  for (int round = 0; round < 200 && (round < 2 || spent_us < budget_us); ++round) {
    const double leader = *std::min_element(best.begin(), best.end());
    for (size_t k = 0; k < groups.size(); ++k) {
      if (round > 0 && best[k] > 1.2 * leader) continue;
      const double took_us = trial.run_us(k);
      best[k] = std::min(best[k], took_us);
      spent_us += took_us;
    }
  }
  return groups[static_cast<size_t>(std::min_element(best.begin(), best.end()) - best.begin())];
}

Params tune_nary(const KernelCall& call) {
  const std::vector<double> coefficients = call.params.reals("coefficients", {});
  const bool weighted =
      std::any_of(coefficients.begin(), coefficients.end(), [](double c) { return c != 0 && std::abs(c) != 1; });
  const auto unread = static_cast<int>(std::count(coefficients.begin(), coefficients.end(), 0.0));
  const NaryLayer layer{call.params.text("op", "add"), weighted, std::max(1, nary_inputs(call) - unread),
                        call.outputs[0].elems()};
  const std::string name = name_of(layer);
  {
    const std::lock_guard lock(known().mutex);
    if (auto at = known().groups.find(name); at != known().groups.end()) return {{"group", int64_t{at->second}}};
  }
  const int group = fastest_nary_group(layer);
  const std::lock_guard lock(known().mutex);
  return {{"group", int64_t{known().groups.emplace(name, group).first->second}}};
}

std::map<std::string, int> known_nary_groups() {
  const std::lock_guard lock(known().mutex);
  return known().groups;
}

void learn_nary_groups(const std::map<std::string, int>& groups) {
  for (const auto& [name, group] : groups) {
    if (group < 2 || group > kMaxNaryGroup)
      throw InvalidModel(text("the group of '", name, "' must lie in [2, ", kMaxNaryGroup, "]; got ", group, "."));
  }
  const std::lock_guard lock(known().mutex);
  for (const auto& [name, group] : groups) known().groups.insert_or_assign(name, group);
}

}  // namespace hetnn::kernels
