// Elementwise steps on a block of rows for each instruction set.
#include "hetnn/kernels/block_ops.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/block_ops.cpp"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

// Rows that lie end to end are one long row.
HWY_INLINE Block Flattened(Block b, bool binary) {
  const bool dense = b.ld_in == b.cols && b.ld_out == b.cols;
  const bool operand_dense =
      !binary || (b.col_step == 1 && b.ld_operand == b.cols) || (b.col_step == 0 && b.ld_operand == 0);
  if (dense && operand_dense) {
    b.cols *= b.rows;
    b.rows = 1;
  }
  return b;
}

template <typename F>
HWY_INLINE void MapRows(const Block& block, F f) {
  const Block b = Flattened(block, false);
  const DF d;
  for (int64_t r = 0; r < b.rows; ++r) {
    const float* in = b.in + r * b.ld_in;
    float* out = b.out + r * b.ld_out;
    int64_t c = 0;
    for (; c + kLanes <= b.cols; c += kLanes) hn::StoreU(f(hn::LoadU(d, in + c)), d, out + c);
    if (c < b.cols) {
      const size_t n = static_cast<size_t>(b.cols - c);
      StoreFirst(f(LoadFirst(in + c, n)), out + c, n);
    }
  }
}

template <typename F>
HWY_INLINE void MapRows2(const Block& block, F f) {
  const Block b = Flattened(block, true);
  const DF d;
  for (int64_t r = 0; r < b.rows; ++r) {
    const float* in = b.in + r * b.ld_in;
    const float* operand = b.operand + r * b.ld_operand;
    float* out = b.out + r * b.ld_out;
    int64_t c = 0;
    if (b.col_step == 1) {
      for (; c + kLanes <= b.cols; c += kLanes)
        hn::StoreU(f(hn::LoadU(d, in + c), hn::LoadU(d, operand + c)), d, out + c);
      if (c < b.cols) {
        const size_t n = static_cast<size_t>(b.cols - c);
        StoreFirst(f(LoadFirst(in + c, n), LoadFirst(operand + c, n)), out + c, n);
      }
    } else {
      const VF y = hn::Set(d, *operand);
      for (; c + kLanes <= b.cols; c += kLanes) hn::StoreU(f(hn::LoadU(d, in + c), y), d, out + c);
      if (c < b.cols) {
        const size_t n = static_cast<size_t>(b.cols - c);
        StoreFirst(f(LoadFirst(in + c, n), y), out + c, n);
      }
    }
  }
}

template <typename F>
HWY_INLINE void MapScalars(const Block& b, F f) {
  for (int64_t r = 0; r < b.rows; ++r) {
    for (int64_t c = 0; c < b.cols; ++c) {
      const float y = b.operand == nullptr ? 0.0f : b.operand[r * b.ld_operand + c * b.col_step];
      b.out[r * b.ld_out + c] = f(b.in[r * b.ld_in + c], y);
    }
  }
}

// Exp and not its saturated form, so that -inf gives -inf / inf = NaN, as in torch.
HWY_INLINE VF Silu(VF x) { return hn::Div(x, hn::Add(Const(1.0f), Exp(hn::Neg(x)))); }

HWY_INLINE VF GeluErf(VF x) {
  const VF half = hn::Mul(Const(0.5f), x);
  return hn::MulAdd(half, Erf(hn::Mul(x, Const(0.70710678118f))), half);
}

HWY_INLINE VF GeluTanh(VF x) {
  const VF inner = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), Const(0.044715f), x);
  const VF half = hn::Mul(Const(0.5f), x);
  return hn::MulAdd(half, Tanh(hn::Mul(Const(0.79788456080f), inner)), half);
}

// x tanh(log(1 + e^x)) = x (e^2 + 2e) / (e^2 + 2e + 2), and x itself once e^x dwarfs 1.
HWY_INLINE VF Mish(VF x) {
  const VF e = Exp(AtMost(Const(20.0f), x));
  const VF t = hn::Mul(e, hn::Add(e, Const(2.0f)));
  return hn::IfThenElse(hn::Gt(x, Const(20.0f)), x, hn::Mul(x, hn::Div(t, hn::Add(t, Const(2.0f)))));
}

// e^x - 1 without cancellation: a Taylor polynomial below 0.3 in magnitude.
HWY_INLINE VF Expm1(VF x) {
  VF p = Const(1.9841270e-4f);
  p = hn::MulAdd(p, x, Const(1.3888889e-3f));
  p = hn::MulAdd(p, x, Const(8.3333333e-3f));
  p = hn::MulAdd(p, x, Const(4.1666667e-2f));
  p = hn::MulAdd(p, x, Const(1.6666667e-1f));
  p = hn::MulAdd(p, x, Const(0.5f));
  const VF near = hn::MulAdd(hn::Mul(p, x), x, x);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), Const(0.3f)), near, hn::Sub(Exp(x), Const(1.0f)));
}

HWY_INLINE VF HardSigmoid(VF x) {
  const VF y = hn::MulAdd(x, Const(1.0f / 6.0f), Const(0.5f));
  return AtLeast(hn::Zero(DF()), AtMost(Const(1.0f), y));
}

#define HETNN_UNARY(name, expression)                      \
  void Op_##name(const Block& b) {                         \
    MapRows(b, [&](VF x) HWY_ATTR { return expression; }); \
  }
#define HETNN_BINARY(name, expression)                            \
  void Op_##name(const Block& b) {                                \
    MapRows2(b, [&](VF x, VF y) HWY_ATTR { return expression; }); \
  }
#define HETNN_SCALAR(name, expression)                                                              \
  void Op_##name(const Block& b) {                                                                  \
    MapScalars(b, [&](float x, [[maybe_unused]] float y) HWY_ATTR -> float { return expression; }); \
  }

HETNN_UNARY(identity, x)
HETNN_UNARY(relu, Relu(x))
HETNN_UNARY(clip, AtMost(Const(b.v1), AtLeast(Const(b.v0), x)))
HETNN_UNARY(leaky_relu, hn::IfThenElse(hn::Gt(x, hn::Zero(DF())), x, hn::Mul(x, Const(b.v0))))
HETNN_UNARY(elu, hn::IfThenElse(hn::Gt(x, hn::Zero(DF())), x, hn::Mul(Expm1(x), Const(b.v0))))
HETNN_UNARY(silu, Silu(x))
HETNN_UNARY(hardswish, hn::Mul(x, HardSigmoid(x)))
HETNN_UNARY(hardsigmoid, HardSigmoid(x))
HETNN_UNARY(sigmoid, Sigmoid(x))
HETNN_UNARY(tanh, Tanh(x))
HETNN_UNARY(gelu, GeluErf(x))
HETNN_UNARY(gelu_tanh, GeluTanh(x))
HETNN_UNARY(mish, Mish(x))
HETNN_SCALAR(softplus, x > 20.0f ? x : std::log1p(std::exp(x)))
HETNN_UNARY(abs, hn::Abs(x))
HETNN_UNARY(neg, hn::Neg(x))
HETNN_UNARY(square, hn::Mul(x, x))
HETNN_UNARY(sqrt, hn::Sqrt(x))
HETNN_UNARY(rsqrt, hn::Div(Const(1.0f), hn::Sqrt(x)))
HETNN_UNARY(reciprocal, hn::Div(Const(1.0f), x))
HETNN_UNARY(exp, Exp(x))
HETNN_SCALAR(log, std::log(x))
HETNN_SCALAR(sin, std::sin(x))
HETNN_SCALAR(cos, std::cos(x))
HETNN_UNARY(erf, Erf(x))
HETNN_SCALAR(floor, std::floor(x))
HETNN_SCALAR(ceil, std::ceil(x))
HETNN_SCALAR(round, std::nearbyint(x))
HETNN_SCALAR(sign, x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? 0.0f : x)
HETNN_UNARY(scale, hn::Mul(x, Const(b.v0)))
HETNN_UNARY(shift, hn::Add(x, Const(b.v0)))
HETNN_BINARY(add, hn::Add(x, y))
HETNN_BINARY(sub, hn::Sub(x, y))
HETNN_BINARY(mul, hn::Mul(x, y))
HETNN_BINARY(div, hn::Div(x, y))
HETNN_BINARY(max, MaxNan(x, y))
HETNN_BINARY(min, MinNan(x, y))
HETNN_SCALAR(pow, std::pow(x, y))
// As in torch: the result has the sign of the divisor.
HETNN_SCALAR(remainder, [&] {
  const float m = std::fmod(x, y);
  return m != 0.0f && (m < 0.0f) != (y < 0.0f) ? m + y : m;
}())
HETNN_SCALAR(floor_div, std::floor(x / y))
HETNN_BINARY(prelu, hn::IfThenElse(hn::Gt(x, hn::Zero(DF())), x, hn::Mul(x, y)))

const BlockFunction* Functions() {
  static constexpr BlockFunction kFunctions[] = {
      Op_identity,    Op_relu,    Op_clip,   Op_leaky_relu, Op_elu,       Op_silu,       Op_hardswish,
      Op_hardsigmoid, Op_sigmoid, Op_tanh,   Op_gelu,       Op_gelu_tanh, Op_mish,       Op_softplus,
      Op_abs,         Op_neg,     Op_square, Op_sqrt,       Op_rsqrt,     Op_reciprocal, Op_exp,
      Op_log,         Op_sin,     Op_cos,    Op_erf,        Op_floor,     Op_ceil,       Op_round,
      Op_sign,        Op_scale,   Op_shift,  Op_add,        Op_sub,       Op_mul,        Op_div,
      Op_max,         Op_min,     Op_pow,    Op_remainder,  Op_floor_div, Op_prelu};
  static_assert(std::size(kFunctions) == kBlockOps);
  return kFunctions;
}

#undef HETNN_UNARY
#undef HETNN_BINARY
#undef HETNN_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {

HWY_EXPORT(Functions);

BlockFunction block_function(BlockOp op) { return HWY_DYNAMIC_DISPATCH(Functions)()[static_cast<int>(op)]; }

std::optional<BlockOp> block_op_from_name(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "identity", "relu",       "clip",      "leaky_relu", "elu",      "silu", "hardswish", "hardsigmoid", "sigmoid",
      "tanh",     "gelu",       "gelu_tanh", "mish",       "softplus", "abs",  "neg",       "square",      "sqrt",
      "rsqrt",    "reciprocal", "exp",       "log",        "sin",      "cos",  "erf",       "floor",       "ceil",
      "round",    "sign",       "scale",     "shift",      "add",      "sub",  "mul",       "div",         "max",
      "min",      "pow",        "remainder", "floor_div",  "prelu"};
  static_assert(std::size(kNames) == kBlockOps);
  const auto at = std::find(std::begin(kNames), std::end(kNames), name);
  if (at == std::end(kNames)) return std::nullopt;
  return static_cast<BlockOp>(at - std::begin(kNames));
}

int block_op_values(BlockOp op) {
  switch (op) {
    case BlockOp::clip:
      return 2;
    case BlockOp::leaky_relu:
    case BlockOp::elu:
    case BlockOp::scale:
    case BlockOp::shift:
      return 1;
    default:
      return 0;
  }
}

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
