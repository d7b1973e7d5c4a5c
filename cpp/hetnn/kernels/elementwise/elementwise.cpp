// unary, binary and where.
#include "hetnn/kernels/elementwise/elementwise.h"

#include <algorithm>

#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/elementwise/compare.h"
#include "hetnn/kernels/elementwise/nary.h"
#include "hetnn/kernels/elementwise/steps.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kSerialBelow = 8192;

/// A first operation, which reads input 0, and steps, run tile by tile.
class Chain final : public Kernel {
 public:
  Chain(const KernelCall& call, std::string_view what, const Step& first)
      : read_(call.inputs[0].dtype), written_(call.outputs[0].dtype) {
    ElementwiseBuilder builder(call, what);
    builder.add_operand(0);
    builder.add_step(first, true);
    builder.add_steps();
    nest_ = builder.nest();
    steps_ = builder.steps();
    operands_ = 1 + static_cast<size_t>(operand_count(first));
    for (const TensorView& input : call.inputs)
      same_width_.push_back(dtype_bytes(input.dtype) == dtype_bytes(call.outputs[0].dtype));
  }

  bool serial() const override { return nest_.elems() < kSerialBelow; }

  // Over what steps read too: a tile is then computed apart, since they read when functions before them have written.
  bool writes_over(size_t input) const override {
    return input + 1 < nest_.operand_count() && same_width_[input] && nest_.col_stride(0) == 1 &&
           (input >= operands_ || nest_.col_stride(1) == 1) && nest_.lie_alike(0, input + 1);
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* y = reinterpret_cast<float*>(outputs[0]);
    const bool dense_out = nest_.col_stride(0) == 1 && written_ == DType::f32;
    bool over_steps = false;
    for (size_t k = operands_; k + 1 < nest_.operand_count(); ++k) over_steps |= inputs[k] == outputs[0];
    nest_.for_tiles(context.thread, context.threads, kTileElems, [&](const Nest::Tile& tile) {
      if (steps_.mixed()) return run_mixed_tile(tile, inputs, outputs[0], over_steps);
      alignas(64) float spread[kTileElems];
      // An output that does not run evenly along the tile's rows is scattered from `spread`.
      const bool direct = dense_out && !over_steps;
      TileRows out{direct ? y + tile.offsets[0] : spread, direct ? nest_.row_stride(0) : tile.cols};
      const float* from = reinterpret_cast<const float*>(inputs[0]) + tile.offsets[1];
      const int64_t col_stride = nest_.col_stride(1);
      if (col_stride == 1) {
        steps_.apply(nest_, tile, inputs, {from, nest_.row_stride(1)}, out);
      } else {
        for (int64_t r = 0; r < tile.rows; ++r)
          for (int64_t c = 0; c < tile.cols; ++c)
            out.at[r * out.ld + c] = from[r * nest_.row_stride(1) + c * col_stride];
        steps_.apply(nest_, tile, inputs, {out.at, out.ld}, out);
      }
      if (!direct) write_tile(nest_, tile, out, written_, outputs[0]);
    });
  }

 private:
  void run_mixed_tile(const Nest::Tile& tile, const std::byte* const* inputs, std::byte* output,
                      bool over_operand) const {
    alignas(64) float room[kTileElems];
    alignas(64) uint8_t truths[kTileElems];
    const bool is_truth = read_ == DType::boolean, lies = nest_.col_stride(1) == 1;
    const auto* from = reinterpret_cast<const float*>(inputs[0]) + tile.offsets[1];
    const auto* holds = reinterpret_cast<const uint8_t*>(inputs[0]) + tile.offsets[1];
    TileIn in{is_truth ? nullptr : from, holds, nest_.row_stride(1)};
    if (!lies && is_truth) in = {nullptr, gathered(tile, holds, truths), tile.cols};
    if (!lies && !is_truth) in = {gathered(tile, from, room), nullptr, tile.cols};
    run_mixed(nest_, tile, steps_, inputs, in, written_, output, over_operand);
  }

  template <typename T>
  const T* gathered(const Nest::Tile& tile, const T* from, T* to) const {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t c = 0; c < tile.cols; ++c)
        to[r * tile.cols + c] = from[r * nest_.row_stride(1) + c * nest_.col_stride(1)];
    return to;
  }

  ElementwiseSteps steps_;
  Nest nest_;
  size_t operands_ = 1;  // of the first function
  DType read_, written_;
  std::vector<bool> same_width_;  // as the output's elements, of the inputs
};

Step function_step(const KernelCall& call, int input) {
  return {.function = call.params.text("op"), .input = input, .values = call.params.reals("values", {})};
}

}  // namespace

namespace {

// Of f32, by a function of so many operands.
Terms function_terms(std::string_view kernel, const KernelCall& call, int operands) {
  const std::optional<ops::Function> function = ops::function_from_name(call.params.text("op"));
  Terms terms(kernel, call);
  terms.hold(function && ops::function_def(*function).operands == operands, "knows no function named '",
             call.params.text("op"), "'");
  return terms.reads(DType::f32, static_cast<size_t>(operands)).writes_behind_steps(DType::f32).steps_on_tiles();
}

}  // namespace

Refusal serves_unary(const KernelCall& call) { return function_terms("unary", call, 1); }

std::unique_ptr<Kernel> make_unary(const KernelCall& call) {
  return std::make_unique<Chain>(call, "unary " + call.params.text("op"), function_step(call, -1));
}

Refusal serves_binary(const KernelCall& call) {
  Terms terms = function_terms("binary", call, 2);
  if (!terms.met() || call.params.text("op") != "prelu") return terms;
  const TensorView& y = call.outputs[0];
  return terms.hold(broadcasts(channel_view(call.inputs[1], y, true), y.shape()),
                    "takes a slope for each channel; got ", view_text(call.inputs[1]), " for ", view_text(y));
}

std::unique_ptr<Kernel> make_binary(const KernelCall& call) {
  return std::make_unique<Chain>(call, "binary " + call.params.text("op"), function_step(call, 1));
}

namespace {

// By bits: a branch on values that no one foretells takes longer than both.
template <typename T>
T choose(uint8_t chosen, T a, T b) {
  const T mask = static_cast<T>(-static_cast<T>(chosen != 0));
  return static_cast<T>((a & mask) | (b & static_cast<T>(~mask)));
}

/// Chosen between two, a row at a time where each operand runs along it or is one value for all of it.
template <typename T>
class Where final : public Kernel {
 public:
  explicit Where(const KernelCall& call) {
    const TensorView& y = call.outputs[0];
    std::vector<NestOperand> operands = {broadcast_operand(y, y.shape(), "the output")};
    for (size_t i = 0; i < 3; ++i)
      operands.push_back(broadcast_operand(call.inputs[i], y.shape(), text("where: input ", i)));
    nest_ = Nest(y.shape(), std::move(operands));
  }
  bool serial() const override { return nest_.elems() < kSerialBelow; }
  bool writes_over(size_t input) const override { return input > 0 && nest_.lie_alike(0, input + 1); }
  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    nest_.for_tiles(context.thread, context.threads, kTileElems, [&](const Nest::Tile& tile) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        const auto at = [&](size_t k) { return tile.offsets[k] + r * nest_.row_stride(k); };
        T* y = reinterpret_cast<T*>(outputs[0]) + at(0);
        const uint8_t* chosen = reinterpret_cast<const uint8_t*>(inputs[0]) + at(1);
        const T *a = reinterpret_cast<const T*>(inputs[1]) + at(2), *b = reinterpret_cast<const T*>(inputs[2]) + at(3);
        const int64_t dy = nest_.col_stride(0), dc = nest_.col_stride(1), da = nest_.col_stride(2),
                      db = nest_.col_stride(3);
        if (dy == 1 && dc == 0 && (*chosen ? da : db) == 1) {
          const T* from = *chosen ? a : b;
          if (from != y) std::copy_n(from, tile.cols, y);
        } else if (dy == 1 && dc == 1 && da == 1 && db == 1) {
          for (int64_t c = 0; c < tile.cols; ++c) y[c] = choose(chosen[c], a[c], b[c]);
        } else if (dy == 1 && dc == 1 && da == 0 && db == 1) {
          for (int64_t c = 0; c < tile.cols; ++c) y[c] = choose(chosen[c], *a, b[c]);
        } else if (dy == 1 && dc == 1 && da == 1 && db == 0) {
          for (int64_t c = 0; c < tile.cols; ++c) y[c] = choose(chosen[c], a[c], *b);
        } else {
          for (int64_t c = 0; c < tile.cols; ++c) y[c * dy] = choose(chosen[c * dc], a[c * da], b[c * db]);
        }
      }
    });
  }

 private:
  Nest nest_;
};

}  // namespace

Refusal serves_where(const KernelCall& call) {
  const DType dtype = call.inputs[1].dtype;
  return Terms("where", call)
      .is(call.inputs[0], DType::boolean, "the condition")
      .is(call.inputs[2], dtype, "what is chosen else")
      .writes_behind_steps(dtype)
      .hold(call.steps.empty() || dtype == DType::f32 || dtype == DType::boolean,
            "takes steps behind f32 and bool; got ", dtype_name(dtype))
      .steps_on_tiles();
}

std::unique_ptr<Kernel> make_where(const KernelCall& call) {
  if (!call.steps.empty()) {
    return std::make_unique<Chain>(
        call, "where", Step{.function = std::string(kChoice), .input = 1, .values = {}, .dtype = call.inputs[1].dtype});
  }
  return visit_width(call.inputs[1].dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<Where<decltype(zero)>>(call);
  });
}

namespace {

constexpr Variant of_row(std::string_view op, std::string_view name, ServesFunction serves, KernelFactory create,
                         bool takes_steps) {
  return {.name = name,
          .op = op,
          .speed = "elementwise",
          .serves = serves,
          .create = create,
          .takes_steps = takes_steps,
          .tiles = takes_steps};
}

// A function of values that lie alike is computed by vectors; others are brought together one by one.
template <size_t kOperands>
Work function_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  // In the time of so many multiply-adds of vectors one is computed, and an element alone is moved.
  constexpr double kTranscendental = 21, kOther = 1, kElement = 3;
  const TensorView& y = call.outputs[0];
  const std::span<const TensorView> operands = call.inputs.first(kOperands);
  const double bytes = bytes_of(operands) + static_cast<double>(y.elem_bytes());
  const bool transcendental = speed_of(call.params.text("op", "")) == "transcendental";
  Work work = Work().fetch(bytes, bytes, machine);
  work.multiplies = vectors_of(y.elems()) * (transcendental ? kTranscendental : kOther);
  const bool apart = std::ranges::any_of(operands, [&](const TensorView& x) {
    return x.elems() == y.elems() && x.elems() > 1 && x.layout != y.layout && !(as_nhwc(x) && as_nhwc(y));
  });
  if (apart) work.multiplies += static_cast<double>(y.elems()) * kElement;
  work.grains = std::max<int64_t>(1, static_cast<int64_t>(bytes) / 64);
  return work;
}

}  // namespace

std::span<const Variant> elementwise_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "unary",
       .op = {},
       .speed = "elementwise",
       .serves = serves_unary,
       .create = make_unary,
       .takes_steps = true,
       .tiles = true,
       .work = function_work<1>},
      {.name = "binary",
       .op = {},
       .speed = "elementwise",
       .serves = serves_binary,
       .create = make_binary,
       .takes_steps = true,
       .tiles = true,
       .work = function_work<2>},
      {.name = "doubles", .op = {}, .speed = "elementwise", .serves = serves_doubles, .create = make_doubles},
      {.name = "binary_i8",
       .op = {},
       .speed = "elementwise",
       .serves = serves_integer_binary,
       .create = make_integer_binary,
       .integers = true},
      {.name = "where",
       .op = "where",
       .speed = "elementwise",
       .serves = serves_where,
       .create = make_where,
       .takes_steps = true,
       .tiles = true},
#define HETNN_PREDICATE(name, ...) of_row(#name, "compare", serves_compare, make_compare, true),
#define HETNN_BITS(name, ...) of_row(#name, "bits", serves_bits, make_bits, false),
#include "hetnn/ops/elementwise/formulas.inc"
      {.name = "nary",
       .op = "nary",
       .speed = "elementwise",
       .serves = serves_nary,
       .create = make_nary,
       .takes_steps = true,
       .tiles = true,
       .tune = tune_nary},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
