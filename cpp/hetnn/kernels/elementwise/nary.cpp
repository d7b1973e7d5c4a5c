// nary: sums, weighted sums, products and extremes of many inputs in one pass over memory.
//
// The output is cut into tiles that stay in the first-level cache. Per tile, `group` inputs at a time are combined with
// the result so far, which never leaves that cache: every input is read once from memory and the output is written
// once, however many inputs there are.
#include "hetnn/kernels/elementwise/nary.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/elementwise.h"
#include "hetnn/kernels/elementwise/nary_ops.h"
#include "hetnn/kernels/epilogue_plan.h"
#include "hetnn/kernels/nest.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kTile = 2048;
constexpr int kMaxInputs = 100;
// Outputs from this size on bypass the caches: nothing that reads them next would find them there.
constexpr int64_t kStream_bytes = 64 << 20;

enum class TermKind { add, subtract, weigh };

struct Term {
  size_t input;
  TermKind kind;
  float coefficient;
};

/// Consecutive terms of one kind that are combined in one pass over a tile, with the result so far as the first stream
/// (but for the first pass).
struct Pass {
  NaryFunction function;
  std::vector<int> inputs;  // kSoFar for the result so far
  std::vector<float> coefficients;
};
constexpr int kSoFar = -1;

class Nary final : public Kernel {
 public:
  Nary(const KernelCall& call, size_t count)
      : deterministic_(call.params.integer("deterministic", 0) != 0), chain_(chain_params(call, count)) {
    const TensorView& y = call.outputs[0];
    std::vector<NestOperand> operands = {broadcast_operand(y, y.shape(), "nary: the output")};
    for (size_t i = 0; i < count; ++i) {
      require_f32(call.inputs[i], text("nary: input ", i));
      operands.push_back(broadcast_operand(call.inputs[i], y.shape(), text("nary: input ", i)));
    }
    nest_ = Nest(y.shape(), std::move(operands));
    build_passes(call, count);
    // Input 0 may be overwritten when nothing reads it after the first pass.
    in_place_ = call.inputs[0].layout == y.layout && call.inputs[0].pitch_elems == y.pitch_elems &&
                std::ranges::equal(call.inputs[0].shape(), y.shape()) && !passes_.empty() &&
                std::ranges::find(passes_[0].inputs, 0) != passes_[0].inputs.end();
    if (!chain_.text("epilogue", "").empty()) make_epilogue(call);
    streams_ = epilogue_ == nullptr && nest_.elems() * 4 >= kStream_bytes;
  }

  bool serial() const override { return nest_.elems() * static_cast<int64_t>(nest_.operand_count()) < 16384; }
  bool in_place(int input) const override { return input == 0 && in_place_; }
  int64_t scratch_bytes(int threads) const override {
    return epilogue_ == nullptr ? 0 : epilogue_->scratch_bytes(threads);
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* y = reinterpret_cast<float*>(outputs[0]);
    nest_.for_tiles(context.thread, context.threads, kTile, [&](const Nest::Tile& tile) {
      for (int64_t r = 0; r < tile.rows; ++r) run_row(tile, r, inputs, y);
    });
    if (epilogue_ == nullptr) return;
    // Tiles are cut alike for both, but another thread may own the same elements there.
    context.barrier.arrive_and_wait();
    std::vector<const std::byte*> chain_inputs = {outputs[0]};
    for (const int input : epilogue_inputs_) chain_inputs.push_back(inputs[input]);
    epilogue_->run(context, chain_inputs.data(), outputs);
  }

 private:
  static Params chain_params(const KernelCall& call, size_t /*count*/) {
    return {{"op", std::string("identity")}, {"epilogue", call.params.text("epilogue", "")}};
  }

  // The epilogue is a chain over the output in place, with its own operands renumbered behind it.
  void make_epilogue(const KernelCall& call) {
    std::vector<EpilogueStep> steps = parse_epilogue(call.params.text("epilogue", ""));
    std::vector<TensorView> views = {call.outputs[0]};
    for (EpilogueStep& step : steps) {
      if (step.input < 0) continue;
      if (static_cast<size_t>(step.input) >= call.inputs.size())
        throw InvalidModel(text("nary: epilogue step '", format_epilogue({step}), "' names an input beyond the call's ",
                                call.inputs.size(), ". Append its operand to the inputs."));
      views.push_back(call.inputs[static_cast<size_t>(step.input)]);
      epilogue_inputs_.push_back(step.input);
      step.input = static_cast<int>(views.size()) - 1;
    }
    chain_.set("epilogue", format_epilogue(steps));
    epilogue_ = make_unary({views, call.outputs, chain_});
  }

  void build_passes(const KernelCall& call, size_t count) {
    const std::string op = call.params.text("op", "add");
    std::vector<double> coefficients = call.params.reals("coefficients", {});
    if (!coefficients.empty() && (op != "add" || coefficients.size() != count))
      throw InvalidModel(text("nary: coefficients go with op add, one per input; got ", coefficients.size(), " for ",
                              count, " inputs of op ", op, ". Leave them out or give them all."));
    const NaryTable& table = nary_table();
    const int64_t given = call.params.integer("group", 0);
    if (given < 0 || given == 1 || given > kMaxNaryGroup)
      throw InvalidModel(
          text("nary: group must be 0 or lie in [2, ", kMaxNaryGroup, "]; got ", given, ". Tune it anew."));
    const auto group = static_cast<size_t>(given == 0 ? kDefaultNaryGroup : given);
    std::vector<Term> terms;
    for (size_t i = 0; i < count; ++i) {
      const double c = coefficients.empty() ? 1.0 : coefficients[i];
      const TermKind kind = c == 1.0 ? TermKind::add : c == -1.0 ? TermKind::subtract : TermKind::weigh;
      // An operand times zero is not read, unless NaN and infinities must act as in a chain of single operations.
      if (c == 0.0 && !deterministic_) continue;
      terms.push_back({i, kind, static_cast<float>(c)});
    }
    if (!deterministic_)
      std::stable_sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.kind < b.kind; });
    const NaryFunction* extreme = op == "mul"   ? table.multiply
                                  : op == "max" ? table.max
                                  : op == "min" ? table.min
                                                : nullptr;
    if (extreme == nullptr && op != "add")
      throw InvalidModel(text("nary: op must be add, mul, max or min; got ", op, ". Use binary for others."));
    const auto dense = [&](size_t input) { return nest_.col_stride(input + 1) == 1; };
    for (size_t i = 0; i < terms.size();) {
      const bool first = passes_.empty();
      const bool weighs = terms[i].kind == TermKind::weigh || (terms[i].kind == TermKind::subtract && first);
      const NaryFunction* functions = extreme                          ? extreme
                                      : weighs && deterministic_       ? table.weigh_rounded
                                      : weighs                         ? table.weigh
                                      : terms[i].kind == TermKind::add ? table.add
                                                                       : table.subtract;
      Pass pass{nullptr, {}, {}};
      if (!first) {
        pass.inputs.push_back(kSoFar);
        pass.coefficients.push_back(1.0f);
      }
      // Inputs that must be gathered come alone. One at least joins, however short the passes are.
      const TermKind kind = terms[i].kind;
      do {
        pass.inputs.push_back(static_cast<int>(terms[i].input));
        pass.coefficients.push_back(terms[i].coefficient);
        ++i;
      } while (i < terms.size() && pass.inputs.size() < group && functions[pass.inputs.size() + 1] != nullptr &&
               terms[i].kind == kind && dense(terms[i].input) && dense(terms[i - 1].input));
      pass.function = functions[pass.inputs.size()];
      passes_.push_back(std::move(pass));
    }
  }

  void run_row(const Nest::Tile& tile, int64_t r, const std::byte* const* inputs, float* y) const {
    alignas(64) float gathered[kTile];
    alignas(64) float partial[kTile];
    const int64_t out_stride = nest_.col_stride(0);
    float* out = y + tile.offsets[0] + r * nest_.row_stride(0);
    // With one stream in flight the partial results are kept apart, so that the output is only ever written.
    const bool apart = streams_ || out_stride != 1;
    if (passes_.empty()) {
      for (int64_t c = 0; c < tile.cols; ++c) out[c * out_stride] = 0.0f;
      return;
    }
    float* result = apart ? partial : out;
    for (size_t p = 0; p < passes_.size(); ++p) {
      const Pass& pass = passes_[p];
      const float* pointers[kMaxNaryGroup];
      for (size_t k = 0; k < pass.inputs.size(); ++k) {
        if (pass.inputs[k] == kSoFar) {
          pointers[k] = result;
          continue;
        }
        const auto operand = static_cast<size_t>(pass.inputs[k]) + 1;
        const float* from = reinterpret_cast<const float*>(inputs[pass.inputs[k]]) + tile.offsets[operand] +
                            r * nest_.row_stride(operand);
        const int64_t stride = nest_.col_stride(operand);
        if (stride != 1) {
          for (int64_t c = 0; c < tile.cols; ++c) gathered[c] = from[c * stride];
          from = gathered;
        }
        pointers[k] = from;
      }
      const bool last = p + 1 == passes_.size();
      const bool stream = last && streams_ && out_stride == 1 && reinterpret_cast<uintptr_t>(out) % 64 == 0;
      float* to = last && out_stride == 1 ? out : result;
      pass.function({pointers, pass.coefficients.data(), to, tile.cols, stream});
    }
    if (out_stride != 1)
      for (int64_t c = 0; c < tile.cols; ++c) out[c * out_stride] = partial[c];
  }

  bool deterministic_;
  Params chain_;
  Nest nest_;
  std::vector<Pass> passes_;
  bool in_place_ = false;
  bool streams_ = false;
  std::unique_ptr<Kernel> epilogue_;
  std::vector<int> epilogue_inputs_;
};

// Operands of the epilogue stand behind the layer's own inputs.
size_t own_inputs(const KernelCall& call) {
  size_t count = call.inputs.size();
  for (const EpilogueStep& step : parse_epilogue(call.params.text("epilogue", "")))
    if (step.input >= 0) count = std::min(count, static_cast<size_t>(step.input));
  return count;
}

}  // namespace

std::unique_ptr<Kernel> make_nary(const KernelCall& call) {
  if (call.outputs.size() != 1)
    throw InvalidModel("nary gives one output. Check the call against kernels/elementwise/elementwise.h.");
  const size_t count = own_inputs(call);
  if (count < 1 || count > kMaxInputs)
    throw InvalidModel(text("nary takes 1 to ", kMaxInputs, " inputs; got ", count, ". Split the layer."));
  require_f32(call.outputs[0], "nary: the output");
  return std::make_unique<Nary>(call, count);
}

int fastest_nary_group(int inputs, int64_t elems, bool weighted, double budget_us) {
  HETNN_ASSERT(inputs >= 1 && inputs <= kMaxInputs && elems >= 1, "inputs ", inputs, ", elems ", elems);
  const TensorView view = TensorView::plain(DType::f32, std::span(&elems, 1));
  const std::vector<TensorView> views(static_cast<size_t>(inputs), view);
  const auto elems_bytes = static_cast<size_t>(elems) * 4;
  std::vector<AlignedBuffer> buffers;
  std::vector<const std::byte*> in;
  in.reserve(static_cast<size_t>(inputs));
  for (int i = 0; i < inputs; ++i) in.push_back(buffers.emplace_back(elems_bytes).data());
  const AlignedBuffer result(elems_bytes);
  std::byte* const out[] = {result.data()};
  SpinBarrier barrier(1);
  using Clock = std::chrono::steady_clock;
  const auto micros = [](Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); };
  std::vector<std::unique_ptr<Kernel>> kernels;
  const int last_group = std::clamp(inputs, 2, kMaxNaryGroup);
  for (int group = 2; group <= last_group; ++group) {
    Params params = {{"op", std::string("add")}, {"group", int64_t{group}}};
    if (weighted) params.set("coefficients", std::vector<double>(static_cast<size_t>(inputs), 0.5));
    kernels.push_back(make_nary({views, std::span(&view, 1), params}));
  }
  // Rounds over all candidates, so that a disturbance meets each of them; the lowest time of each counts.
  std::vector<double> best(kernels.size(), HUGE_VAL);
  const auto begin = Clock::now();
  for (int round = 0; round < 50 && (round < 1 || micros(Clock::now() - begin) < budget_us); ++round) {
    for (size_t i = 0; i < kernels.size(); ++i) {
      const auto start = Clock::now();
      kernels[i]->run({0, 1, barrier, nullptr}, in.data(), out);
      best[i] = std::min(best[i], micros(Clock::now() - start));
    }
  }
  size_t chosen = 0;
  for (size_t i = 1; i < best.size(); ++i)
    if (best[i] < 0.99 * best[chosen]) chosen = i;
  return static_cast<int>(chosen) + 2;
}

}  // namespace hetnn::kernels
