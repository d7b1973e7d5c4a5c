// Measuring fan-ins of n-ary layers, and remembering them.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/base/parallel.h"
#include "hetnn/kernels/elementwise/elementwise.h"
#include "hetnn/kernels/elementwise/nary.h"
#include "hetnn/kernels/elementwise/nary_ops.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace hetnn::kernels {
namespace {

// Runs of small layers go round a pool that leaves the nearer caches only, as in a network, where another layer has
// just written their operands. Larger layers are measured cold: flushed from all caches, or else in turns with more
// than most last caches hold.
constexpr int64_t kSmallPool_bytes = 8 << 20;
constexpr int64_t kLargePool_bytes = 40 << 20;
// What one run touches: of a larger layer it computes a stretch of about as much.
constexpr int64_t kRun_bytes = 6 << 20;
#if defined(__x86_64__)
constexpr bool kCanFlush = true;
void flush_line(const std::byte* at) { _mm_clflush(at); }
#else
constexpr bool kCanFlush = false;
void flush_line(const std::byte* /*at*/) {}
#endif
constexpr int64_t kPage_bytes = 4096;
// Short runs are timed together: the clock is no finer than some ten nanoseconds.
constexpr int64_t kTimed_bytes = 512 << 10;
// More threads than these share out memory no differently.
constexpr int kMostThreads = 4;
constexpr int kMostRounds = 256;
// Times as close as this are taken for equal; of such fan-ins the one nearest to what is mostly the fastest is taken:
// few passes touch the output less often, but a core follows only so many streams of operands at once.
constexpr double kEqual = 1.015;
constexpr int kUsual = 12;

struct Known {
  std::mutex mutex;
  std::map<std::string, int> fan_ins;
};
Known& known() {
  static Known instance;
  return instance;
}

std::string name_of(const NaryLayer& layer) {
  const int log2 = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(layer.elems, 1) - 1));
  const int threads = std::min(layer.threads, kMostThreads);
  return text(layer.op, layer.weighted ? " weighted " : " ", layer.inputs, " x 2^", log2, " by ", threads);
}

// The first pass joins `fan_in` inputs, every other one as many with the result so far.
int passes_of(int inputs, int fan_in) {
  return inputs <= fan_in ? 1 : 1 + (inputs - fan_in + fan_in - 2) / (fan_in - 1);
}

// For each number of passes the least fan-in: its passes are the most even.
std::vector<int> candidates(const NaryLayer& layer) {
  const int most = layer.op == "add" ? kMaxFanIn : kShortFanIn;
  std::vector<int> out = {2};
  for (int fan_in = 3; fan_in <= most; ++fan_in)
    if (passes_of(layer.inputs, fan_in) < passes_of(layer.inputs, out.back())) out.push_back(fan_in);
  return out;
}

class Trial {
 public:
  Trial(const NaryLayer& layer, const std::vector<int>& fan_ins)
      : operands_(layer.inputs + 1), operand_elems_(std::max<int64_t>(layer.elems, 1)) {
    const TensorView view = TensorView::plain(DType::f32, std::span(&operand_elems_, 1));
    const std::vector<TensorView> views(static_cast<size_t>(layer.inputs), view);
    for (const int fan_in : fan_ins) {
      Params params = {{"op", layer.op}, {"fan_in", int64_t{fan_in}}};
      if (layer.weighted) params.set("coefficients", std::vector<double>(views.size(), 0.5));
      kernels_.push_back(make_nary({views, std::span(&view, 1), params}));
    }
    threads_ = kernels_[0]->serial() ? 1 : std::clamp(layer.threads, 1, kMostThreads);
    lay_out();
  }

  /// The time of one run, on the operands next in turn.
  double run_us(size_t candidate) {
    using Clock = std::chrono::steady_clock;
    SpinBarrier barrier(threads_);
    Clock::time_point start;
    parallel_region(threads_, [&](int thread) {
      barrier.arrive_and_wait();
      if (thread == 0) start = Clock::now();
      for (int64_t k = 0; k < repeats_; ++k) {
        run(*kernels_[candidate], (turn_ + k) % turns_, thread, barrier);
        barrier.arrive_and_wait();
      }
    });
    const double took_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (flushes()) flush();
    turn_ = (turn_ + repeats_) % turns_;
    return took_us / static_cast<double>(repeats_);
  }

 private:
  // The pool holds whole layers one after the other, or of one large layer the stretches that runs take turns with.
  void lay_out() {
    const int64_t layer_bytes = 4 * operand_elems_ * operands_;
    // Threads take whole tiles, and all stretches as many for each.
    const int64_t tile_elems = nary_tile_elems(operand_elems_), tiles = (operand_elems_ + tile_elems - 1) / tile_elems;
    const int64_t tiles_bytes = 4 * tile_elems * operands_ * threads_;  // one for each thread
    const int64_t stretch_tiles = std::max<int64_t>(1, kRun_bytes / tiles_bytes) * threads_;
    parts_ = layer_bytes <= kRun_bytes ? 1 : std::max<int64_t>(1, tiles / stretch_tiles);
    if (parts_ > 1) {
      turns_ = flushes() ? 1 : std::clamp<int64_t>(kLargePool_bytes * parts_ / layer_bytes, 1, parts_);
      pitch_elems_ = std::min(operand_elems_, (tiles * turns_ / parts_ + 1) * tile_elems);
    } else {
      pitch_elems_ = operand_elems_;
      turns_ = std::max<int64_t>(2, kSmallPool_bytes / layer_bytes);
      repeats_ = std::clamp<int64_t>(kTimed_bytes / layer_bytes, 1, turns_);
    }
    // Small operands seldom share all their places in a cache: they lie a line apart. Large ones begin at the same
    // place of a page, as allocators hand out whole pages, but of pages that lie anywhere: an odd number apart.
    const int64_t unit = parts_ > 1 ? kPage_bytes / 4 : 16;
    pitch_elems_ = ((pitch_elems_ + unit - 1) / unit | 1) * unit;
    const int64_t layers = parts_ > 1 ? 1 : turns_;
    pool_ = AlignedBuffer(static_cast<size_t>(4 * pitch_elems_ * operands_ * layers));
    if (flushes()) flush();
  }

  bool flushes() const { return kCanFlush && parts_ > 1; }

  // Takes the pool out of all caches.
  void flush() const {
    constexpr int64_t kLine_bytes = 64;
    const auto lines = static_cast<int64_t>(pool_.size_bytes()) / kLine_bytes;
    parallel_region(threads_, [&](int thread) {
      for (int64_t k = lines * thread / threads_; k < lines * (thread + 1) / threads_; ++k)
        flush_line(pool_.data() + k * kLine_bytes);
    });
  }

  void run(const Kernel& kernel, int64_t turn, int thread, SpinBarrier& barrier) const {
    const std::byte* inputs[kMaxNaryInputs];
    std::byte* at = pool_.data() + (parts_ > 1 ? 0 : 4 * turn * pitch_elems_ * operands_);
    for (int64_t k = 0; k + 1 < operands_; ++k) inputs[k] = at + 4 * pitch_elems_ * k;
    std::byte* output = at + 4 * pitch_elems_ * (operands_ - 1);
    // As one of so many threads that each computes its part of the stretch.
    const int64_t part = parts_ > 1 ? turn * threads_ + thread : thread;
    kernel.run({static_cast<int>(part), static_cast<int>(threads_ * parts_), barrier, nullptr}, inputs, &output);
  }

  int64_t operands_;
  int64_t operand_elems_;
  int64_t pitch_elems_ = 0;  // from one operand in the pool to the next
  int64_t parts_ = 1;        // stretches of the layer
  int64_t turns_ = 1, turn_ = 0, repeats_ = 1;
  int threads_ = 1;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  AlignedBuffer pool_;
};

/// A fan-in on trial.
struct Candidate {
  size_t number;
  std::vector<double> took_us;

  /// The mean of the lowest third: of many times the least is luck.
  double typical_us() const {
    std::vector<double> sorted = took_us;
    std::sort(sorted.begin(), sorted.end());
    const size_t count = (sorted.size() + 2) / 3;
    return std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count), 0.0) /
           static_cast<double>(count);
  }
  bool operator<(const Candidate& other) const { return typical_us() < other.typical_us(); }
};

}  // namespace

int fastest_fan_in(const NaryLayer& layer, double budget_us) {
  HETNN_ASSERT(layer.inputs >= 1 && layer.inputs <= kMaxNaryInputs && layer.elems >= 0, name_of(layer));
  const std::vector<int> fan_ins = candidates(layer);
  if (fan_ins.size() == 1) return fan_ins.front();
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Trial trial(layer, fan_ins);
  std::vector<Candidate> left;
  for (size_t k = 0; k < fan_ins.size(); ++k) left.push_back({k, {}});
  // Rounds over all candidates, so that a disturbance meets each of them, in a random order, so that none keeps
  // meeting the same operands. Whoever is far behind is out: the better the times are known, the less is far.
  std::minstd_rand random;
  // Memory that a system hands out for the first time may take longer to come than all trials: they get half the time
  // at least.
  const Clock::time_point set_up = Clock::now();
  const auto since_us = [](Clock::time_point then) {
    return std::chrono::duration<double, std::micro>(Clock::now() - then).count();
  };
  double round_us = 0;  // of the last round, flushing included
  const auto fits = [&] {
    return since_us(begin) + round_us <= budget_us || since_us(set_up) + round_us <= budget_us / 2;
  };
  bool hurry = false;
  for (int round = 1; left.size() > 1 && (round <= 2 || (round <= kMostRounds && fits())); ++round) {
    const Clock::time_point round_begin = Clock::now();
    std::shuffle(left.begin(), left.end(), random);
    for (Candidate& candidate : left) candidate.took_us.push_back(trial.run_us(candidate.number));
    round_us = since_us(round_begin);
    // Where few rounds fit the time, the hopeless go early; else not before some rounds have shown what is chance.
    if (round == 1) hurry = round_us > budget_us / 16;
    if (!hurry && round % 8 != 0) continue;
    const double far = 1 + std::max(0.06, 0.8 / round);
    const double leader = std::min_element(left.begin(), left.end())->typical_us();
    std::erase_if(left, [&](const Candidate& c) { return c.typical_us() > far * leader; });
  }
  const double equal_us = kEqual * std::min_element(left.begin(), left.end())->typical_us();
  std::erase_if(left, [&](const Candidate& c) { return c.typical_us() > equal_us; });
  const auto strangeness = [&](const Candidate& c) {
    return std::pair(std::abs(fan_ins[c.number] - kUsual), c.number);
  };
  return fan_ins[std::ranges::min_element(left, {}, strangeness)->number];
}

ops::Attrs tuned_fan_in(const NaryLayer& layer) {
  const std::string name = name_of(layer);
  {
    const std::lock_guard lock(known().mutex);
    if (auto at = known().fan_ins.find(name); at != known().fan_ins.end()) return {{"fan_in", Dim(at->second)}};
  }
  const int fan_in = fastest_fan_in(layer);
  const std::lock_guard lock(known().mutex);
  return {{"fan_in", Dim(known().fan_ins.emplace(name, fan_in).first->second)}};
}

ops::Attrs tune_nary(const KernelCall& call, int threads) {
  const std::vector<double> coefficients = call.params.reals("coefficients", {});
  const bool weighted =
      std::any_of(coefficients.begin(), coefficients.end(), [](double c) { return c != 0 && std::abs(c) != 1; });
  const auto unread = static_cast<int>(std::count(coefficients.begin(), coefficients.end(), 0.0));
  return tuned_fan_in({call.params.text("op", "add"), weighted, std::max(1, nary_inputs(call) - unread),
                       call.outputs[0].elems(), threads});
}

std::map<std::string, int> known_fan_ins() {
  const std::lock_guard lock(known().mutex);
  return known().fan_ins;
}

void learn_fan_ins(const std::map<std::string, int>& fan_ins) {
  for (const auto& [name, fan_in] : fan_ins) {
    if (fan_in < 2 || fan_in > kMaxFanIn)
      throw InvalidModel(text("the fan-in of '", name, "' must lie in [2, ", kMaxFanIn, "]; got ", fan_in, "."));
  }
  const std::lock_guard lock(known().mutex);
  for (const auto& [name, fan_in] : fan_ins) known().fan_ins.insert_or_assign(name, fan_in);
}

}  // namespace hetnn::kernels
