// unary, binary, where and cast.
#include "hetnn/kernels/elementwise/elementwise.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/kernels/dispatch_dtype.h"
#include "hetnn/kernels/elementwise/nary.h"
#include "hetnn/kernels/elementwise/scalar_ops.h"
#include "hetnn/kernels/elementwise/steps.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/quant/quant.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kSerialBelow = 8192;

void check_counts(std::string_view op, const KernelCall& call, size_t inputs) {
  if (call.inputs.size() < inputs || call.outputs.size() != 1)
    throw InvalidModel(text(op, " takes ", inputs, " inputs and gives one output; got ", call.inputs.size(), " and ",
                            call.outputs.size(), ". Check the call against kernels/elementwise/elementwise.h."));
}

bool same_view(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.layout == b.layout && (a.layout == Layout::plain || a.pitch_elems == b.pitch_elems) &&
         std::ranges::equal(a.shape(), b.shape());
}

/// f32: a first operation and steps, run tile by tile.
class Chain final : public Kernel {
 public:
  Chain(const KernelCall& call, std::string_view what, const std::string& op, bool binary) {
    const TensorView& y = call.outputs[0];
    ElementwiseBuilder builder(call, what);
    builder.add_operand(0);
    const int second = !binary ? -1 : op == "prelu" ? builder.add_channel_operand(1, true) : builder.add_operand(1);
    builder.add_step(op, call.params.reals("values", {}), second);
    builder.add_steps();
    nest_ = builder.nest();
    steps_ = builder.steps();
    for (int input = 0; input < (binary ? 2 : 1); ++input)
      in_place_[input] = same_view(call.inputs[static_cast<size_t>(input)], y);
    // A first operand that must be spread into the output beforehand would overwrite the second.
    if (nest_.col_stride(1) != 1 || nest_.col_stride(0) != 1) in_place_[1] = false;
  }

  bool serial() const override { return nest_.elems() < kSerialBelow; }
  bool in_place(int input) const override { return input < 2 && in_place_[input]; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* y = reinterpret_cast<float*>(outputs[0]);
    nest_.for_tiles(context.thread, context.threads, kTileElems, [&](const Nest::Tile& tile) {
      alignas(64) float spread[kTileElems];
      // An output that does not run evenly along the tile's rows is scattered from `spread`.
      const bool dense_out = nest_.col_stride(0) == 1;
      TileRows out{dense_out ? y + tile.offsets[0] : spread, dense_out ? nest_.row_stride(0) : tile.cols};
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
      if (!dense_out) scatter(nest_, tile, out, y);
    });
  }

 private:
  ElementwiseSteps steps_;
  Nest nest_;
  bool in_place_[2] = {false, false};
};

/// Any types, any strides, one element at a time: y = f(first input's element, second's, ...).
template <typename Out, typename F>
class PerElement final : public Kernel {
 public:
  PerElement(const KernelCall& call, std::string_view what, size_t inputs, bool prelu, F f) : f_(f) {
    const TensorView& y = call.outputs[0];
    std::vector<NestOperand> operands = {broadcast_operand(y, y.shape(), "the output")};
    for (size_t i = 0; i < inputs; ++i)
      operands.push_back(broadcast_operand(prelu && i == 1 ? channel_view(call.inputs[i], y, true) : call.inputs[i],
                                           y.shape(), text(what, ": input ", i)));
    nest_ = Nest(y.shape(), std::move(operands));
  }

  bool serial() const override { return nest_.elems() < kSerialBelow; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* y = reinterpret_cast<Out*>(outputs[0]);
    nest_.for_tiles(context.thread, context.threads, kTileElems, [&](const Nest::Tile& tile) {
      int64_t at[4] = {};
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (size_t i = 0; i < nest_.operand_count(); ++i) at[i] = tile.offsets[i] + r * nest_.row_stride(i);
        for (int64_t c = 0; c < tile.cols; ++c) {
          y[at[0]] = f_(inputs, at + 1);
          for (size_t i = 0; i < nest_.operand_count(); ++i) at[i] += nest_.col_stride(i);
        }
      }
    });
  }

 private:
  Nest nest_;
  F f_;
};

template <typename Out, typename F>
std::unique_ptr<Kernel> per_element(const KernelCall& call, std::string_view what, size_t inputs, bool prelu, F f) {
  return std::make_unique<PerElement<Out, F>>(call, what, inputs, prelu, f);
}

template <typename T>
T element(const std::byte* const* inputs, int input, const int64_t* at) {
  return reinterpret_cast<const T*>(inputs[input])[at[input]];
}

void require_dtype(const TensorView& view, DType dtype, std::string_view what) {
  if (view.dtype != dtype)
    throw InvalidModel(
        text(what, " must be ", dtype_name(dtype), "; got ", dtype_name(view.dtype), ". Insert a cast."));
}

void refuse_steps(std::string_view what, const KernelCall& call) {
  if (!call.steps.empty())
    throw Unsupported(text(what, ": steps need f32; got ", dtype_name(call.inputs[0].dtype),
                           ". Keep them as calls of their own."));
}

std::optional<CompareOp> compare_op_from_name(std::string_view name) {
  static constexpr std::string_view kNames[] = {"eq", "ne",          "lt",         "le",         "gt",
                                                "ge", "logical_and", "logical_or", "logical_xor"};
  const auto* at = std::find(std::begin(kNames), std::end(kNames), name);
  if (at == std::end(kNames)) return std::nullopt;
  return static_cast<CompareOp>(at - std::begin(kNames));
}

// Arithmetic on bool is on 0 and 1: the product is "and", the sum and the maximum are "or".
uint8_t bool_binary(BlockOp op, uint8_t x, uint8_t y) {
  if (op == BlockOp::add) op = BlockOp::max;
  return scalar_binary<uint8_t>(op, x, y);
}

}  // namespace

std::unique_ptr<Kernel> make_unary(const KernelCall& call) {
  check_counts("unary", call, 1);
  const std::string op = call.params.text("op");
  const std::string what = "unary " + op;
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  if (op == "isnan" || op == "logical_not") {
    require_dtype(y, DType::boolean, what + ": the output");
    return dispatch_dtype(x.dtype, what, [&]<typename Tag>(Tag) {
      using T = typename Tag::type;
      const bool isnan = op == "isnan";
      return per_element<bool>(call, what, 1, false, [isnan](const std::byte* const* in, const int64_t* at) {
        const T value = element<T>(in, 0, at);
        return isnan ? value != value : value == T(0);
      });
    });
  }
  require_dtype(y, x.dtype, what + ": the output");
  if (x.dtype == DType::f32) return std::make_unique<Chain>(call, what, op, false);
  refuse_steps(what, call);
  const bool relu6 = op == "relu6";
  const std::vector<double> values = relu6 ? std::vector<double>{0, 6} : call.params.reals("values", {});
  const std::optional<BlockOp> block_op = block_op_from_name(relu6 ? "clip" : op);
  check_step(what, op, call.params.reals("values", {}), false);
  const double v0 = values.empty() ? 0 : values[0], v1 = values.size() < 2 ? 0 : values[1];
  return dispatch_dtype(x.dtype, what, [&]<typename Tag>(Tag) -> std::unique_ptr<Kernel> {
    using T = typename Tag::type;
    if constexpr (std::is_same_v<T, bool>) {
      if (*block_op != BlockOp::identity)
        throw Unsupported(text(what, " is not defined on bool. Use logical_not, or cast to i32 first."));
      return per_element<bool>(call, what, 1, false,
                               [](const std::byte* const* in, const int64_t* at) { return element<bool>(in, 0, at); });
    } else {
      return per_element<T>(call, what, 1, false,
                            [o = *block_op, v0, v1](const std::byte* const* in, const int64_t* at) {
                              return scalar_unary<T>(o, element<T>(in, 0, at), v0, v1);
                            });
    }
  });
}

std::unique_ptr<Kernel> make_binary(const KernelCall& call) {
  check_counts("binary", call, 2);
  const std::string op = call.params.text("op");
  const std::string what = "binary " + op;
  const DType dtype = call.inputs[0].dtype;
  require_dtype(call.inputs[1], dtype, what + ": input 1");
  if (const std::optional<CompareOp> compare = compare_op_from_name(op)) {
    require_dtype(call.outputs[0], DType::boolean, what + ": the output");
    return dispatch_dtype(dtype, what, [&]<typename Tag>(Tag) {
      using T = typename Tag::type;
      return per_element<bool>(call, what, 2, false, [o = *compare](const std::byte* const* in, const int64_t* at) {
        return scalar_compare<T>(o, element<T>(in, 0, at), element<T>(in, 1, at));
      });
    });
  }
  require_dtype(call.outputs[0], dtype, what + ": the output");
  if (dtype == DType::f32) return std::make_unique<Chain>(call, what, op, true);
  refuse_steps(what, call);
  check_step(what, op, {}, true);
  const BlockOp block_op = *block_op_from_name(op);
  return dispatch_dtype(dtype, what, [&]<typename Tag>(Tag) -> std::unique_ptr<Kernel> {
    using T = typename Tag::type;
    if constexpr (std::is_same_v<T, bool>) {
      return per_element<uint8_t>(call, what, 2, false, [block_op](const std::byte* const* in, const int64_t* at) {
        return bool_binary(block_op, element<uint8_t>(in, 0, at), element<uint8_t>(in, 1, at));
      });
    } else {
      return per_element<T>(call, what, 2, op == "prelu", [block_op](const std::byte* const* in, const int64_t* at) {
        return scalar_binary<T>(block_op, element<T>(in, 0, at), element<T>(in, 1, at));
      });
    }
  });
}

std::unique_ptr<Kernel> make_where(const KernelCall& call) {
  check_counts("where", call, 3);
  require_dtype(call.inputs[0], DType::boolean, "where: the condition");
  require_dtype(call.inputs[2], call.inputs[1].dtype, "where: input 2");
  require_dtype(call.outputs[0], call.inputs[1].dtype, "where: the output");
  return dispatch_width(call.inputs[1].dtype, [&]<typename Tag>(Tag) {
    using T = typename Tag::type;
    return per_element<T>(call, "where", 3, false, [](const std::byte* const* in, const int64_t* at) {
      return element<uint8_t>(in, 0, at) != 0 ? element<T>(in, 1, at) : element<T>(in, 2, at);
    });
  });
}

std::unique_ptr<Kernel> make_cast(const KernelCall& call) {
  check_counts("cast", call, 1);
  if (is_narrow_float(call.inputs[0].dtype) || is_narrow_float(call.outputs[0].dtype)) return make_narrow_cast(call);
  return dispatch_dtype(call.inputs[0].dtype, "cast: x", [&]<typename FromTag>(FromTag) {
    using From = typename FromTag::type;
    return dispatch_dtype(call.outputs[0].dtype, "cast: the output", [&]<typename ToTag>(ToTag) {
      using To = typename ToTag::type;
      return per_element<To>(call, "cast", 1, false, [](const std::byte* const* in, const int64_t* at) {
        return scalar_cast<To>(element<From>(in, 0, at));
      });
    });
  });
}

std::span<const Variant> elementwise_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "unary", .op = {}, .speed = "elementwise", .create = make_unary, .takes_steps = true},
      {.name = "binary", .op = {}, .speed = "elementwise", .create = make_binary, .takes_steps = true},
      {.name = "where", .op = "where", .speed = "elementwise", .create = make_where},
      {.name = "cast", .op = "cast", .speed = "elementwise", .create = make_cast},
      {.name = "nary", .op = "nary", .speed = "elementwise", .create = make_nary, .takes_steps = true, .tune = tune_nary},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
