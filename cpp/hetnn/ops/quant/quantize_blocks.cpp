// quantize_blocks: reals as integers in blocks.
#include <algorithm>
#include <cmath>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/base/stored.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/meaning.h"
#include "hetnn/ops/quant/blocks.h"

namespace hetnn::ops {
namespace {

bool is_float_code(DType dtype) { return is_stored(dtype) && is_stored_float(dtype); }

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const DType to = call.dtype("to");
  if (!is_float(x.dtype) || x.dtype == DType::f64 || (!is_integer(to) && !is_stored(to)) || dtype_bytes(to) > 4) {
    fail(call, "quantize_blocks_c1",
         text("the input must be f32, f16 or bf16, and `to` a type of integers of at most 32 bits or a stored float; "
              "got ",
              to_string(x), " to ", dtype_name(to), ". Cast the input."));
  }
  check_blocks(call, to, true);
  return {{to, x.shape}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  if (y.elems() == 0) return;
  const std::vector<float> scales = values_as<float>(e.input(1));
  const std::vector<double> zeros = e.has(2) ? numbers_of(e.input(2)) : std::vector<double>();
  const int axis = axis_of(e.call, e.call.integer("axis"), x.rank());
  const bool saturate = e.call.flag("saturate"), floats = is_float_code(y.dtype);
  const auto range = floats ? std::pair<int64_t, int64_t>{} : integer_range(y.dtype);
  const auto least = static_cast<double>(range.first), most = static_cast<double>(range.second);
  const ConvertElements read(x.dtype, DType::f32);
  std::vector<float> reals;
  std::vector<int64_t> steps;
  for_blocks(x.shape, axis, fixed_integer(e.call, "block"),
             [&](int64_t begin, int64_t count, int64_t first, int64_t inner) {
               reals.resize(static_cast<size_t>(count));
               steps.resize(static_cast<size_t>(count));
               read(x.data + begin * dtype_bytes(x.dtype), reinterpret_cast<std::byte*>(reals.data()), count);
               std::byte* to = y.data + begin * dtype_bytes(y.dtype);
               for (int64_t k = 0; k < count; ++k) {
                 const auto at = static_cast<size_t>(first + k % inner), own = static_cast<size_t>(k);
                 const float quotient = reals[own] / scales[at];
                 if (floats) {
                   to[own] = static_cast<std::byte>(stored_bits(y.dtype, double{quotient}, saturate));
                   continue;
                 }
                 const double step = std::isnan(quotient) ? 0.0 : std::nearbyint(double{quotient});
                 steps[own] = static_cast<int64_t>(std::clamp(step + (zeros.empty() ? 0.0 : zeros[at]), least, most));
               }
               if (!floats) write_integers(y.dtype, steps.data(), count, to);
             });
}

Work work(const Call& call) { return {.flops = elements(call.output().shape) * 3}; }

}  // namespace

OpDef define_quantize_blocks() {
  return {
      .name = "quantize_blocks",
      .doc =
          "Reals as integers in blocks: y[..,k,..] = clamp(round(x[..,k,..] / scales[..,b,..]) + "
          "zero_points[..,b,..]) within the type, b = k / block, rounded down, along the axis; to nearest even, "
          "NaN as the zero point.",
      .inputs = {{"x", "any shape, f32, f16 or bf16"},
                 {"scales", "that of x with ceil(size / block) along the axis, real"},
                 {"zero_points", "the same shape, of the type of y or of the scales; absent: 0", true}},
      .attrs = {{"axis", AttrKind::integer, Dim(-1), "along which the blocks lie"},
                {"block", AttrKind::integer, std::nullopt, "how many elements have one scale; the last may be less"},
                {"to", AttrKind::dtype, DType::i8,
                 "the type of y: integers, or a stored float, which has no zero point"},
                {"saturate", AttrKind::boolean, true, "of a float: as in cast"}},
      .traits = static_cast<uint32_t>(Trait::conversion),
      .infer = infer,
      .meaning = meaning,
      .work = work,
      .constraints = {no_blocks("quantize_blocks_npu_c1")},
      .tolerance = 0,
      .samples = {"quantize_blocks(f32[3,40], f32[3,3], i8[3,3]) {block = 16}",
                  "quantize_blocks(f32[40,n,2], f32[2,n,2], u8[2,n,2]) {axis = 0, block = 32, to = u8}",
                  "quantize_blocks(f16[2,6], f16[2,3], _) {axis = 1, block = 2, to = i16}"}};
}

}  // namespace hetnn::ops
