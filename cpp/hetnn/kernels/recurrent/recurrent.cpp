// Layers whose threads have units of their own, and meet after every step. Calls fused behind see each state once it is
// made; the recurrence goes on from what it was before them.
#include "hetnn/kernels/recurrent/recurrent.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/gemm/split.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"
#include "hetnn/kernels/recurrent/cells.h"

namespace hetnn::kernels {
namespace {

enum class Cell : uint8_t { lstm, gru };

// Sequences whose products read the weights together, and whose gates stay in a cache.
constexpr int64_t kTogether = 8;

class Recurrent final : public Kernel {
 public:
  Recurrent(const KernelCall& call, Cell cell)
      : cell_(cell),
        gates_(cell == Cell::lstm ? 4 : 3),
        reverse_(call.params.integer("reverse", 0) != 0),
        steps_(call.inputs[0].dims[0]),
        batch_(call.inputs[0].dims[1]),
        units_(call.inputs[1].dims[1]),
        biased_(call.params.integer("bias", 0) != 0),
        epilogue_(call, call.outputs[0]) {}

  int64_t scratch_bytes(int threads) const override {
    // The gates' sums of all units, and of the last gate of a gru once more.
    return (states_floats() + threads * sums_floats()) * static_cast<int64_t>(sizeof(float));
  }
  bool serial() const override { return batch_ * gates_ * units_ * units_ < 65536; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto in = [&](size_t k) { return reinterpret_cast<const float*>(inputs[k]); };
    const auto out = [&](size_t k) { return reinterpret_cast<float*>(outputs[k]); };
    const Share share = share_of(units_, context.thread, context.threads, 16);
    const int64_t first = share.begin, count = share.end - share.begin, layer = batch_ * units_;
    float* states = reinterpret_cast<float*>(context.scratch);
    float* sums = states + states_floats() + context.thread * sums_floats();
    const auto each_row = [&](auto f) {
      for (int64_t b = 0; b < batch_; ++b) f(b * units_ + first);
    };
    if (cell_ == Cell::lstm) each_row([&](int64_t at) { std::copy_n(in(3) + at, count, out(2) + at); });
    const float* before = in(2);
    for (int64_t step = 0; step < steps_; ++step) {
      const int64_t t = reverse_ ? steps_ - 1 - step : step;
      float* made = out(0) + t * layer;
      float* next = epilogue_.empty() ? made : states + step % 2 * layer;
      for (int64_t begin = 0; count > 0 && begin < batch_; begin += kTogether) {
        const int64_t together = std::min(kTogether, batch_ - begin);
        const auto x = [&](int64_t b) { return in(0) + (t * batch_ + begin + b) * gates_ * units_ + first; };
        const auto gate = [&](int64_t b, int64_t g) { return sums + (b * gates_ + g) * count; };
        for (int64_t g = 0; g < gates_; ++g) {
          const bool apart = cell_ == Cell::gru && g == 2;  // its product is scaled before it is added
          for (int64_t b = 0; b < together; ++b) {
            if (!apart) {
              std::copy_n(x(b) + g * units_, count, gate(b, g));
            } else if (biased_) {
              std::copy_n(in(3) + first, count, gate(b, g));
            } else {
              std::fill_n(gate(b, g), count, 0.0f);
            }
          }
          ops_->add_products(in(1) + (g * units_ + first) * units_, before + begin * units_, units_, together, units_,
                             count, gate(0, g), gates_ * count);
        }
        for (int64_t b = 0; b < together; ++b) {
          const int64_t at = (begin + b) * units_ + first;
          if (cell_ == Cell::lstm) {
            ops_->lstm(gate(b, 0), gate(b, 1), gate(b, 2), gate(b, 3), count, out(2) + at, next + at);
          } else {
            ops_->gru(gate(b, 0), gate(b, 1), x(b) + 2 * units_, gate(b, 2), before + at, count, next + at);
          }
        }
      }
      if (!epilogue_.empty() && count > 0) {
        each_row([&](int64_t at) { std::copy_n(next + at, count, made + at); });
        epilogue_.apply(made + first, units_, batch_, count, t * batch_, first, inputs);
      }
      context.barrier.arrive_and_wait();
      before = next;
    }
    each_row([&](int64_t at) { std::copy_n(before + at, count, out(1) + at); });
  }

 private:
  static int64_t aligned(int64_t floats) { return (floats + 15) / 16 * 16; }
  int64_t sums_floats() const { return aligned(std::min(kTogether, batch_) * gates_ * units_); }
  // The last two states, which the next step reads, where steps change what is written.
  int64_t states_floats() const { return epilogue_.empty() ? 0 : aligned(2 * batch_ * units_); }

  Cell cell_;
  int64_t gates_;
  bool reverse_;
  int64_t steps_, batch_, units_;
  bool biased_;
  EpiloguePlan epilogue_;
  const CellOps* ops_ = &cell_ops();
};

Refusal serves(std::string_view name, const KernelCall& call, Cell cell) {
  const size_t own = cell == Cell::lstm ? 4 : call.params.integer("bias", 0) != 0 ? 4 : 3;
  return Terms(name, call).of(DType::f32, own).plain().steps_on_rows();
}

// Of every step the products of all gates and the functions of the cells. A step begins when all threads have ended
// the one before, and reads each thread's part of the weights again, for a few sequences at once.
Work recurrent_work(const KernelCall& call, const Machine& machine, int threads, Cell cell) {
  // In the time of so many multiply-adds of vectors a row's sum is added up across its lanes, and sixteen cells are
  // made of their gates.
  constexpr double kRow = 4, kLstm = 100, kGru = 60;
  constexpr int64_t kStates = 4;
  const int64_t steps = call.inputs[0].dims[0], batch = call.inputs[0].dims[1], units = call.inputs[1].dims[1];
  const int64_t rows = (cell == Cell::lstm ? 4 : 3) * units, groups = (units + kPanel - 1) / kPanel;
  const double weights = static_cast<double>(rows * units) * sizeof(float);
  const int64_t rounds = steps * ((batch + kStates - 1) / kStates);
  Work work = Work().fetch(bytes_of(call.outputs) + static_cast<double>(call.inputs[0].elem_bytes()), weights, machine);
  work.bytes[machine.level_of(weights / std::max(1, threads))] += static_cast<double>(rounds) * weights;
  const auto cells = static_cast<double>(steps * batch);
  work.multiplies = cells * static_cast<double>(rows) * (vectors_of(units) + kRow);
  work.apart = cells * static_cast<double>(groups) * (cell == Cell::lstm ? kLstm : kGru);
  work.grains = std::max<int64_t>(1, groups);
  work.barriers = static_cast<int>(steps);
  return work;
}

template <Cell cell>
Work work_of_cell(const KernelCall& call, const Machine& machine, int threads) {
  return recurrent_work(call, machine, threads, cell);
}

}  // namespace

Refusal serves_lstm(const KernelCall& call) { return serves("lstm", call, Cell::lstm); }
Refusal serves_gru(const KernelCall& call) { return serves("gru", call, Cell::gru); }

std::unique_ptr<Kernel> make_lstm(const KernelCall& call) { return std::make_unique<Recurrent>(call, Cell::lstm); }

std::unique_ptr<Kernel> make_gru(const KernelCall& call) { return std::make_unique<Recurrent>(call, Cell::gru); }

std::span<const Variant> recurrent_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "lstm",
       .op = "lstm",
       .speed = "product",
       .serves = serves_lstm,
       .create = make_lstm,
       .layout = LayoutWish::plain,
       .takes_steps = true,
       .work = work_of_cell<Cell::lstm>},
      {.name = "gru",
       .op = "gru",
       .speed = "product",
       .serves = serves_gru,
       .create = make_gru,
       .layout = LayoutWish::plain,
       .takes_steps = true,
       .work = work_of_cell<Cell::gru>},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
