// Data movement against index arithmetic.
#include "../kernel_runner.h"
#include "expect_error.h"

namespace hetnn::kernels::testing {
namespace {

using Index = std::vector<int64_t>;

int64_t flat(const Index& index, const Index& shape) {
  int64_t at = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) at = at * shape[axis] + index[axis];
  return at;
}

/// y[index] = f(index) for all indices of a shape.
template <typename F>
std::vector<double> generate(const Index& shape, F f) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  std::vector<double> y;
  Index index(shape.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t axis = shape.size(); axis-- > 0;) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    y.push_back(f(index));
  }
  return y;
}

std::vector<double> counted(int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i % 100));
  return values;
}

/// Calls f with plain and nhwc views of a shape where both exist.
template <typename F>
void for_views(DType dtype, const Index& shape, F f) {
  f(TensorView::plain(dtype, shape));
  if (shape.size() >= 3 && shape.size() <= 5) f(TensorView::nhwc(dtype, shape, shape[1] + 3));
}

template <typename F>
void check_moves(const std::string& name, const Index& in, const Index& out, const Params& params, F source,
                 const std::string& what,
                 std::vector<DType> dtypes = {DType::f32, DType::i64, DType::i8, DType::boolean}) {
  for (const DType dtype : dtypes)
    for_views(dtype, in, [&](const TensorView& x) {
      for_views(dtype, out, [&](const TensorView& y) {
        Tensor input{x, counted(x.elems())};
        if (dtype == DType::boolean)
          for (double& v : input.values) v = std::fmod(v, 2);
        const auto expected =
            generate(out, [&](const Index& index) { return input.values[static_cast<size_t>(source(index))]; });
        check_kernel(name, {input}, {y}, params, {expected}, 0, what);
      });
    });
}

TEST(Copy, BetweenLayouts) {
  for (const Index& shape : {Index{2, 19, 5, 7}, Index{1, 64, 20, 20}, Index{3, 4, 9}, Index{2, 3, 4, 5, 6}, Index{7}})
    check_moves(
        "copy", shape, shape, {}, [&](const Index& i) { return flat(i, shape); }, "copy");
}

TEST(Reshape, KeepsLogicalOrder) {
  const Index from = {2, 6, 4, 5};
  for (const Index& to : {Index{2, 120}, Index{240}, Index{2, 4, 6, 5}, Index{12, 20}, Index{2, 6, 20}})
    check_moves(
        "reshape", from, to, {}, [&](const Index& i) { return flat(i, to); }, "reshape");
  const Index pixel = {3, 21, 1, 1};
  check_moves(
      "reshape", pixel, {3, 21}, {},
      [&](const Index& i) {
        return flat(i, {3, 21});
      },
      "flatten");
}

TEST(Transpose, EveryPermutationOfFourAxes) {
  const Index shape = {2, 3, 4, 5};
  Index perm = {0, 1, 2, 3};
  do {
    Index out;
    for (const int64_t axis : perm) out.push_back(shape[static_cast<size_t>(axis)]);
    check_moves("transpose", shape, out, {{"perm", perm}},
                [&](const Index& i) {
                  Index from(4);
                  for (size_t axis = 0; axis < 4; ++axis) from[static_cast<size_t>(perm[axis])] = i[axis];
                  return flat(from, shape);
                },
                "transpose", {DType::f32, DType::i8});
    if (HasFatalFailure()) return;
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Concat, AlongEveryAxisAndLayout) {
  enum class Lying { plain, nhwc, in_the_whole };
  for (int64_t axis = 0; axis < 4; ++axis)
    for (const Lying lying : {Lying::plain, Lying::nhwc, Lying::in_the_whole})
      for (const bool nhwc_out : {false, true}) {
        const Index shape = {2, 3, 4, 5};
        const int64_t pitch = (axis == 1 ? 7 : 3) + 2;
        std::vector<Tensor> inputs;
        Index out = shape;
        out[static_cast<size_t>(axis)] = 0;
        for (const int64_t size : {1, 4, 2}) {
          Index part = shape;
          part[static_cast<size_t>(axis)] = size;
          out[static_cast<size_t>(axis)] += size;
          const auto seed = static_cast<unsigned>(size);
          inputs.push_back(lying == Lying::plain  ? random_plain(part, seed)
                           : lying == Lying::nhwc ? random_nhwc(part, seed, 1)
                                                  : random_nhwc(part, seed, pitch - part[1]));
        }
        const auto expected = generate(out, [&](Index index) {
          for (const Tensor& input : inputs) {
            const Index part(input.view.shape().begin(), input.view.shape().end());
            int64_t& at = index[static_cast<size_t>(axis)];
            if (at < part[static_cast<size_t>(axis)]) return input.values[static_cast<size_t>(flat(index, part))];
            at -= part[static_cast<size_t>(axis)];
          }
          return std::nan("");
        });
        check_kernel("concat", inputs,
                     {nhwc_out ? TensorView::nhwc(DType::f32, out, pitch) : TensorView::plain(DType::f32, out)},
                     {{"axis", axis}}, {expected}, 0, "concat");
      }
}

TEST(Slice, ClampsAndSteps) {
  const Index shape = {4, 7, 6, 5};
  check_moves(
      "slice", shape, {4, 3, 6, 5},
      {{"axis", int64_t{1}}, {"start", int64_t{1}}, {"end", int64_t{100}}, {"step", int64_t{2}}},
      [&](const Index& i) {
        return flat({i[0], 1 + 2 * i[1], i[2], i[3]}, shape);
      },
      "slice");
  check_moves(
      "slice", shape, {4, 7, 6, 2}, {{"axis", int64_t{-1}}, {"start", int64_t{-3}}, {"end", int64_t{-1}}},
      [&](const Index& i) {
        return flat({i[0], i[1], i[2], 2 + i[3]}, shape);
      },
      "slice from the back");
  check_moves(
      "slice", shape, {0, 7, 6, 5}, {{"start", int64_t{3}}, {"end", int64_t{2}}}, [](const Index&) { return 0; },
      "empty slice");
}

TEST(Pad, EveryMode) {
  const Index shape = {2, 3, 4, 5}, out = {2, 4, 6, 9};
  const Index padding = {0, 1, 2, 3, 0, 0, 0, 1};
  const auto folded = [](const std::string& mode, int64_t i, int64_t n) {
    if (mode == "replicate") return std::clamp<int64_t>(i, 0, n - 1);
    if (mode == "circular") return (i + n) % n;
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
  };
  for (const std::string mode : {"reflect", "replicate", "circular"})
    check_moves(
        "pad", shape, out, {{"padding", padding}, {"mode", mode}},
        [&](const Index& i) {
          return flat({i[0], folded(mode, i[1] - 1, 3), folded(mode, i[2] - 2, 4), folded(mode, i[3] - 3, 5)}, shape);
        },
        "pad " + mode);
  // A constant, and a negative padding that crops.
  for (const bool nhwc : {false, true}) {
    const Tensor x = nhwc ? random_nhwc(shape, 1, 1) : random_plain(shape, 1);
    const auto expected = generate({2, 5, 3, 5}, [&](const Index& i) {
      return i[1] < 1 || i[1] > 3 ? 2.5 : x.values[static_cast<size_t>(flat({i[0], i[1] - 1, i[2] + 1, i[3]}, shape))];
    });
    check_kernel("pad", {x}, {TensorView::plain(DType::f32, Index{2, 5, 3, 5})},
                 {{"padding", Index{0, 1, -1, 0, 0, 1, 0, 0}}, {"value", 2.5}}, {expected}, 0, "pad constant");
  }
}

TEST(Gather, AlongAnyAxisWithAnyIndexShape) {
  const Index shape = {3, 5, 4};
  for (const DType index_type : {DType::i64, DType::i32})
    for (int64_t axis = 0; axis < 3; ++axis) {
      const Tensor x = random_plain(shape, 1);
      const Tensor indices = plain({2, 2}, {1, 0, -1, 2}, index_type);
      Index out = shape;
      out[static_cast<size_t>(axis)] = 2;
      out.insert(out.begin() + axis, 2);
      const auto expected = generate(out, [&](const Index& i) {
        const auto a = static_cast<size_t>(axis);
        int64_t chosen = static_cast<int64_t>(indices.values[static_cast<size_t>(i[a] * 2 + i[a + 1])]);
        if (chosen < 0) chosen += shape[a];
        Index from = i;
        from.erase(from.begin() + axis);
        from[a] = chosen;
        return x.values[static_cast<size_t>(flat(from, shape))];
      });
      check_kernel("gather", {x, indices}, {TensorView::plain(DType::f32, out)}, {{"axis", axis}}, {expected}, 0,
                   "gather");
    }
}

TEST(Gather, ChannelsInAnyLayouts) {
  const Index shape = {2, 5, 3, 7}, out = {2, 4, 3, 7};
  const Tensor indices = plain({4}, {1, 0, -1, 1}, DType::i64);
  for (const DType dtype : {DType::f32, DType::i8, DType::i64})
    for_views(dtype, shape, [&](const TensorView& x) {
      for_views(dtype, out, [&](const TensorView& y) {
        const Tensor input{x, counted(x.elems())};
        const auto expected = generate(out, [&](Index index) {
          index[1] = Index{1, 0, 4, 1}[static_cast<size_t>(index[1])];
          return input.values[static_cast<size_t>(flat(index, shape))];
        });
        check_kernel("gather_channels", {input, indices}, {y}, {{"axis", int64_t{1}}}, {expected}, 0, "gather");
      });
    });
}

// Two halves in turns, as channel shuffles pick them, few channels out of many, and such as lie far apart.
TEST(Gather, ManyChannelsOfPixels) {
  const Index shape = {2, 58, 3, 7};
  std::vector<double> halves, ends, apart;
  for (int k = 0; k < 58; ++k) halves.push_back(k % 2 * 29 + k / 2);
  for (int k = 0; k < 21; ++k) ends.push_back(k % 2 == 0 ? k - 58 : -1 - k);
  for (int k = 0; k < 40; ++k) apart.push_back(k * 17 % 58);
  for (const DType dtype : {DType::f32, DType::i8})
    for (const auto& picked : {halves, ends, apart}) {
      const auto count = static_cast<int64_t>(picked.size());
      const Index out = {2, count, 3, 7};
      const Tensor input{TensorView::nhwc(dtype, shape, 61), counted(TensorView::plain(dtype, shape).elems())};
      const auto expected = generate(out, [&](Index index) {
        index[1] = static_cast<int64_t>(picked[static_cast<size_t>(index[1])]);
        if (index[1] < 0) index[1] += 58;
        return input.values[static_cast<size_t>(flat(index, shape))];
      });
      check_kernel("gather_channels", {input, plain({count}, picked, DType::i64)},
                   {TensorView::nhwc(dtype, out, count + 3)}, {{"axis", int64_t{1}}}, {expected}, 0, "gather");
    }
}

TEST(Expand, RepeatsAxesOfOne) {
  check_moves(
      "expand", {3, 1, 5}, {2, 3, 4, 5}, {},
      [](const Index& i) {
        return flat({i[1], 0, i[3]}, {3, 1, 5});
      },
      "expand");
}

TEST(UpsampleNearest, PicksTheFloor) {
  const Index shape = {2, 5, 3, 4};
  for (const Index& size : {Index{6, 8}, Index{7, 9}, Index{2, 2}})
    check_moves("upsample_nearest2d", shape, {2, 5, size[0], size[1]}, {},
                [&](const Index& i) {
                  return flat({i[0], i[1], i[2] * 3 / size[0], i[3] * 4 / size[1]}, shape);
                },
                "nearest", {DType::f32});
}

TEST(UpsampleBilinear, InterpolatesAsTorchDoes) {
  const Index shape = {1, 18, 3, 4};
  for (const bool align : {false, true})
    for (const Index& size : {Index{6, 8}, Index{5, 7}, Index{1, 1}})
      for (const bool nhwc : {false, true}) {
        const Tensor x = nhwc ? random_nhwc(shape, 1) : random_plain(shape, 1);
        const auto source = [&](int64_t i, int64_t in, int64_t out) {
          if (align)
            return out > 1 ? static_cast<double>(i) * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
          return std::max(0.0,
                          (static_cast<double>(i) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5);
        };
        const Index out = {1, 18, size[0], size[1]};
        const auto expected = generate(out, [&](const Index& i) {
          const double y = source(i[2], 3, size[0]), z = source(i[3], 4, size[1]);
          const auto y0 = static_cast<int64_t>(y), z0 = static_cast<int64_t>(z);
          const auto at = [&](int64_t r, int64_t c) {
            return x.values[static_cast<size_t>(
                flat({i[0], i[1], std::min<int64_t>(r, 2), std::min<int64_t>(c, 3)}, shape))];
          };
          const double fy = y - static_cast<double>(y0), fz = z - static_cast<double>(z0);
          return (1 - fy) * ((1 - fz) * at(y0, z0) + fz * at(y0, z0 + 1)) +
                 fy * ((1 - fz) * at(y0 + 1, z0) + fz * at(y0 + 1, z0 + 1));
        });
        check_kernel("upsample_bilinear2d", {x},
                     {nhwc ? TensorView::nhwc(DType::f32, out, 20) : TensorView::plain(DType::f32, out)},
                     {{"align_corners", int64_t{align}}}, {expected}, 1e-6, "bilinear");
      }
}

TEST(Transpose, NamesAWrongPermutation) {
  const Tensor x = random_plain({2, 3}, 1);
  EXPECT_ERROR(run_kernel("transpose", {x}, {TensorView::plain(DType::f32, Index{2, 3})}, {{"perm", Index{1, 0}}}),
               InternalError, "[2,3] plain to [2,3] plain");
}

}  // namespace
}  // namespace hetnn::kernels::testing
