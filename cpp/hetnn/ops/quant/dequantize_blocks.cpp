// dequantize_blocks: the reals that integers in blocks stand for.
#include <algorithm>
#include <array>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/base/stored.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/meaning.h"
#include "hetnn/ops/quant/blocks.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (!is_integer(x.dtype) && !is_stored(x.dtype)) {
    fail(call, "dequantize_blocks_c1",
         text("the input must be of integers, or of a float that is stored only; got ", to_string(x), "."));
  }
  check_blocks(call, x.dtype, false);
  return {{call.input(1).dtype, x.shape}};
}

// In the type T: a difference is rounded to it once, as those of integers of 8 bits or fewer never are.
template <typename T>
void compute(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const std::vector<T> scales = values_as<T>(e.input(1));
  std::vector<double> zeros(scales.size());
  if (e.has(2)) zeros = numbers_of(e.input(2));
  const int axis = axis_of(e.call, e.call.integer("axis"), x.rank());
  const ConvertElements write(DTypeOf<T>::value, y.dtype);
  std::vector<double> codes, of_bytes(256);  // what each byte is, of types of one
  std::array<std::byte, 256> bytes{};
  for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::byte>(k);
  const bool narrow = dtype_bytes(x.dtype) == 1;
  if (narrow) read_numbers(x.dtype, bytes.data(), 256, of_bytes.data());
  std::vector<T> reals;
  for_blocks(x.shape, axis, fixed_integer(e.call, "block"),
             [&](int64_t begin, int64_t count, int64_t first, int64_t inner) {
               codes.resize(static_cast<size_t>(count));
               reals.resize(static_cast<size_t>(count));
               const std::byte* from = x.data + begin * dtype_bytes(x.dtype);
               if (narrow)
                 std::transform(from, from + count, codes.begin(),
                                [&](std::byte code) { return of_bytes[static_cast<size_t>(code)]; });
               else
                 read_numbers(x.dtype, from, count, codes.data());
               for (int64_t row = 0; row < count; row += inner) {
                 const double *code = codes.data() + row, *zero = zeros.data() + first;
                 const T* scale = scales.data() + first;
                 T* to = reals.data() + row;
                 for (int64_t k = 0; k < inner; ++k) to[k] = static_cast<T>(code[k] - zero[k]) * scale[k];
               }
               write(reinterpret_cast<const std::byte*>(reals.data()), y.data + begin * dtype_bytes(y.dtype), count);
             });
}

void meaning(const Evaluation& e) {
  if (e.output().elems() == 0) return;
  if (e.input(1).dtype == DType::f64) return compute<double>(e);
  compute<float>(e);
}

Work work(const Call& call) { return {.flops = elements(call.output().shape) * 2}; }

}  // namespace

OpDef define_dequantize_blocks() {
  return {
      .name = "dequantize_blocks",
      .doc =
          "The reals that integers in blocks stand for: y[..,k,..] = (x[..,k,..] - zero_points[..,b,..]) * "
          "scales[..,b,..], b = k / block, rounded down, along the axis.",
      .inputs = {{"x", "any shape, integers or a stored float"},
                 {"scales", "that of x with ceil(size / block) along the axis, of the type of y"},
                 {"zero_points", "the same shape, of the type of x or of y; absent: 0", true}},
      .attrs = {{"axis", AttrKind::integer, Dim(-1), "along which the blocks lie"},
                {"block", AttrKind::integer, std::nullopt, "how many elements have one scale; the last may be less"}},
      .traits = static_cast<uint32_t>(Trait::conversion),
      .infer = infer,
      .meaning = meaning,
      .work = work,
      .constraints = {no_blocks("dequantize_blocks_npu_c1")},
      .tolerance = 0,
      .samples = {"dequantize_blocks(i8[3,40], f32[3,3], i8[3,3]) {block = 16}",
                  "dequantize_blocks(u8[40,n,2], f16[2,n,2], _) {axis = 0, block = 32}",
                  "dequantize_blocks(i16[2,6], f32[2,3], f32[2,3]) {axis = 1, block = 2}"}};
}

}  // namespace hetnn::ops
