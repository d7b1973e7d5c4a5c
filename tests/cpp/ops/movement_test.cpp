// Movements keep every bit of every element type, at the places that the formulas say.
#include <gtest/gtest.h>

#include <functional>

#include "edge_values.h"
#include "expect_error.h"
#include "run_meaning.h"

namespace hetnn::ops {
namespace {

// Row 0 the edge values, row 1 the same from the back.
template <typename T>
Tensor two_rows() {
  const std::vector<T> edges = edge_values<T>();
  const auto n = static_cast<int64_t>(edges.size());
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DTypeOf<T>::value, {2, n}, &data);
  for (int64_t k = 0; k < n; ++k) {
    reinterpret_cast<T*>(data)[k] = edges[static_cast<size_t>(k)];
    reinterpret_cast<T*>(data)[n + k] = edges[static_cast<size_t>(n - 1 - k)];
  }
  return out;
}

// `found` has this shape and at each position in row-major order the element of x of that number.
template <typename T>
void expect_elements(const Tensor& found, const std::vector<int64_t>& shape, const Tensor& x,
                     const std::function<int64_t(int64_t)>& source, const char* what) {
  ASSERT_EQ(found.shape(), shape) << what;
  ASSERT_EQ(found.dtype(), x.dtype()) << what;
  const auto from = bits_of<T>(x), to = bits_of<T>(found);
  for (int64_t k = 0; k < found.elems(); ++k)
    ASSERT_EQ(to[static_cast<size_t>(k)], from[static_cast<size_t>(source(k))])
        << what << " of " << dtype_name(x.dtype()) << ", element " << k;
}

TEST(Movement, KeepsEveryBitOfEveryType) {
  for (const DType dtype : kComputedDTypes) {
    visit_dtype(dtype, [](auto zero) {
      using T = decltype(zero);
      const Tensor x = two_rows<T>();
      const int64_t n = x.shape()[1];
      const auto same = [](int64_t k) { return k; };
      expect_elements<T>(run_meaning("identity", {x}), {2, n}, x, same, "identity");
      expect_elements<T>(run_meaning("constant", {}, {{"value", x}}), {2, n}, x, same, "constant");
      expect_elements<T>(run_meaning("reshape", {x}, {{"shape", dims({n, 2})}}), {n, 2}, x, same, "reshape");
      expect_elements<T>(
          run_meaning("permute", {x}, {{"perm", dims({1, 0})}}), {n, 2}, x,
          [=](int64_t k) { return k % 2 * n + k / 2; }, "permute");
      expect_elements<T>(
          run_meaning("expand", {x.reshaped({2, 1, n})}, {{"shape", dims({3, 2, 2, n})}}), {3, 2, 2, n}, x,
          [=](int64_t k) { return k / (2 * n) % 2 * n + k % n; }, "expand");
      expect_elements<T>(
          run_meaning("slice", {x}, {{"axis", Dim(1)}, {"start", Dim(-1)}}), {2, 1}, x,
          [=](int64_t k) { return k * n + n - 1; }, "slice");
      expect_elements<T>(
          run_meaning("concat", {x, x, x}, {{"axis", Dim(-1)}}), {2, 3 * n}, x,
          [=](int64_t k) { return k / (3 * n) * n + k % n; }, "concat");
      expect_elements<T>(
          run_meaning("gather", {x, tensor_of<int64_t>({3}, {-1, 0, n - 2})}, {{"axis", Dim(1)}}), {2, 3}, x,
          [=](int64_t k) { return k / 3 * n + (k % 3 == 0   ? n - 1
                                               : k % 3 == 1 ? 0
                                                            : n - 2); }, "gather");
      expect_elements<T>(
          run_meaning("pad", {x}, {{"padding", dims({0, 1, 1, -1})}, {"mode", std::string("replicate")}}), {3, n}, x,
          [=](int64_t k) { return std::min<int64_t>(k / n, 1) * n + std::max<int64_t>(k % n - 1, 0); }, "pad");
    });
  }
}

TEST(Movement, PermutesByAnyOrderOfAxes) {
  std::vector<float> values(2 * 33 * 3 * 40);
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k);
  const Tensor x = Tensor::of<float>({2, 33, 3, 40}, values);
  std::vector<int64_t> perm = {0, 1, 2, 3};
  do {
    const Tensor y = run_meaning("permute", {x}, {{"perm", std::vector<Dim>(perm.begin(), perm.end())}});
    const std::vector<int64_t> strides = {33 * 3 * 40, 3 * 40, 40, 1};
    expect_elements<float>(
        y,
        {x.shape()[static_cast<size_t>(perm[0])], x.shape()[static_cast<size_t>(perm[1])],
         x.shape()[static_cast<size_t>(perm[2])], x.shape()[static_cast<size_t>(perm[3])]},
        x,
        [&](int64_t k) {
          int64_t at = 0;
          for (size_t axis = 4; axis-- > 0;) {
            const int64_t size = y.shape()[axis];
            at += k % size * strides[static_cast<size_t>(perm[axis])];
            k /= size;
          }
          return at;
        },
        "permute");
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Movement, PadsByEveryMode) {
  const Tensor x = tensor_of<int64_t>({3}, {1, 2, 3});
  const auto padded = [&](const char* mode, std::initializer_list<int64_t> padding) {
    const auto values =
        run_meaning("pad", {x}, {{"padding", dims(padding)}, {"mode", std::string(mode)}, {"value", 7.0}});
    return std::vector<int64_t>(values.values<int64_t>().begin(), values.values<int64_t>().end());
  };
  EXPECT_EQ(padded("constant", {2, 1}), (std::vector<int64_t>{7, 7, 1, 2, 3, 7}));
  EXPECT_EQ(padded("reflect", {2, 2}), (std::vector<int64_t>{3, 2, 1, 2, 3, 2, 1}));
  EXPECT_ERROR(padded("reflect", {3, 0}), InvalidModel, "axis 0 of size 3 is too short for a border of 3 and 0",
               "pad_c3");
  EXPECT_EQ(padded("replicate", {2, 2}), (std::vector<int64_t>{1, 1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(padded("circular", {2, 2}), (std::vector<int64_t>{2, 3, 1, 2, 3, 1, 2}));
  EXPECT_EQ(padded("circular", {3, 0}), (std::vector<int64_t>{1, 2, 3, 1, 2, 3}));
  EXPECT_ERROR(padded("circular", {0, 4}), InvalidModel, "too short for a border of 0 and 4");
  EXPECT_EQ(padded("constant", {-1, -1}), (std::vector<int64_t>{2}));
  EXPECT_EQ(run_meaning("pad", {Tensor::scalar<float>(5)}, {{"padding", dims({})}}), Tensor::scalar<float>(5));
}

TEST(Movement, NothingIsMovedWithoutComplaint) {
  const Tensor none = Tensor::zeros(DType::f32, {2, 0, 3});
  EXPECT_EQ(run_meaning("permute", {none}, {{"perm", dims({2, 1, 0})}}).shape(), (std::vector<int64_t>{3, 0, 2}));
  EXPECT_EQ(run_meaning("reshape", {none}, {{"shape", dims({0})}}).shape(), (std::vector<int64_t>{0}));
  EXPECT_EQ(run_meaning("concat", {none, none}, {{"axis", Dim(1)}}).elems(), 0);
  EXPECT_EQ(run_meaning("gather", {none, Tensor::zeros(DType::i32, {0})}, {{"axis", Dim(1)}}).elems(), 0);
  const auto padded = [&](std::string mode, std::vector<Dim> padding) {
    return run_meaning("pad", {none}, {{"padding", std::move(padding)}, {"mode", std::move(mode)}, {"value", 4.0}});
  };
  EXPECT_EQ(padded("constant", dims({0, 1, 0, 0, 0, 0})).elems(), 6);
  EXPECT_EQ(padded("reflect", dims({1, 0, 0, 0, 0, 2})).elems(), 0);
  for (const char* mode : {"reflect", "replicate", "circular"})
    EXPECT_ERROR(padded(mode, dims({0, 1, 0, 0, 0, 0})), InvalidModel, "axis 1 of size 0 is too short", "pad_c3");
}

TEST(Movement, GatherCountsFromTheBackAndRefusesWhatIsOutside) {
  const Tensor x = tensor_of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run_meaning("gather", {x, tensor_of<int32_t>({2}, {-3, 2})}), tensor_of<float>({2, 2}, {1, 2, 5, 6}));
  const auto outside = [&](const Tensor& indices) { return run_meaning("gather", {x, indices}); };
  EXPECT_ERROR(outside(tensor_of<int64_t>({1}, {3})), InvalidModel, "gather 'y': index 3 is outside an axis of 3",
               "must be in [-3,3)", "Check the indices", "(gather_c2)");
  EXPECT_ERROR(outside(tensor_of<int32_t>({1}, {-4})), InvalidModel, "index -4 is outside an axis of 3");
  EXPECT_ERROR(outside(tensor_of<int64_t>({1}, {std::numeric_limits<int64_t>::min()})), InvalidModel,
               "index -9223372036854775808 is outside");
  EXPECT_ERROR(run_meaning("gather", {Tensor::zeros(DType::f32, {0, 2}), tensor_of<int64_t>({1}, {0})}), InvalidModel,
               "index 0 is outside an axis of 0");
  EXPECT_ERROR(run_meaning("gather", {x, tensor_of<int64_t>({1}, {-1})}, {{"from_end", false}}), InvalidModel,
               "index -1 is outside an axis of 3; it must be in [0,3)");
}

TEST(Movement, AttributesAreCheckedAtEveryRank) {
  const Tensor scalar = Tensor::scalar<float>(1), row = tensor_of<float>({2}, {1, 2});
  const Tensor square = Tensor::zeros(DType::f32, {2, 2});
  const auto permuted = [](const Tensor& x, std::initializer_list<int64_t> perm) {
    return run_meaning("permute", {x}, {{"perm", dims(perm)}});
  };
  EXPECT_ERROR(permuted(square, {5, 0}), InvalidModel, "every axis of the input once; got [5,0] for [2,2]",
               "permute_c1");
  EXPECT_ERROR(permuted(square, {0, 0}), InvalidModel, "got [0,0]");
  EXPECT_ERROR(permuted(square, {-1, 0}), InvalidModel, "got [-1,0]");
  EXPECT_ERROR(permuted(square, {0}), InvalidModel, "got [0] for [2,2]");
  EXPECT_ERROR(permuted(scalar, {0}), InvalidModel, "got [0] for []");
  EXPECT_EQ(permuted(scalar, {}), scalar);
  EXPECT_ERROR(run_meaning("concat", {scalar, scalar}), InvalidModel, "no axis to join", "concat_c2");
  EXPECT_ERROR(run_meaning("concat", {row, row}, {{"axis", Dim(1)}}), InvalidModel, "axis must be in [-1,1)");
  EXPECT_ERROR(run_meaning("gather", {scalar, tensor_of<int64_t>({1}, {0})}), InvalidModel, "no axis to pick from",
               "gather_c3");
  EXPECT_ERROR(run_meaning("slice", {scalar}), InvalidModel, "no axis to cut", "slice_c1");
  EXPECT_ERROR(run_meaning("slice", {row}, {{"step", Dim(0)}}), InvalidModel, "step must be positive", "slice_c2");
  for (const auto& [start, end] : {std::pair<Dim, Dim>{-1, 2}, std::pair<Dim, Dim>{0, 3}}) {
    const Attrs attrs = {{"start", start}, {"end", end}, {"inside", true}};
    EXPECT_ERROR(run_meaning("slice", {row}, attrs), InvalidModel, "must lie in the axis", "slice_c3");
  }
  EXPECT_ERROR(run_meaning("reshape", {square}, {{"shape", dims({3})}}), InvalidModel, "as many elements", "got [3]");
  EXPECT_ERROR(run_meaning("reshape", {square}, {{"shape", dims({-2, -2})}}), InvalidModel, "got [-2,-2] for [2,2]");
  EXPECT_ERROR(run_meaning("expand", {Tensor::zeros(DType::f32, {1})}, {{"shape", dims({-3})}}), InvalidModel,
               "must broadcast to shape; got [1] and [-3]");
  EXPECT_ERROR(run_meaning("pad", {row}, {{"padding", dims({-3, 0})}}), InvalidModel, "must not crop more", "pad_c2");
  EXPECT_ERROR(run_meaning("pad", {row}, {{"padding", dims({1, 1})}, {"mode", std::string("mirror")}}), InvalidModel,
               "got mirror", "pad_c1");
  EXPECT_ERROR(run_meaning("arange", {}, {{"end", Dim(3)}, {"step", Dim(0)}}), InvalidModel, "step must not be 0",
               "arange_c2");
}

TEST(Movement, ArangeAndCastAreExact) {
  EXPECT_EQ(run_meaning("arange", {}, {{"start", Dim(5)}, {"end", Dim(-2)}, {"step", Dim(-3)}}),
            tensor_of<int64_t>({3}, {5, 2, -1}));
  EXPECT_EQ(run_meaning("arange", {}, {{"end", Dim(3)}, {"dtype", DType::f16}}), tensor_of<Float16>({3}, {0, 1, 2}));
  const int64_t large = (int64_t{1} << 53) + 1;
  EXPECT_EQ(run_meaning("arange", {}, {{"start", Dim(large)}, {"end", Dim(large + 2)}}),
            tensor_of<int64_t>({2}, {large, large + 1}));
  EXPECT_EQ(run_meaning("cast", {tensor_of<int64_t>({2}, {large, -1})}, {{"to", DType::u8}}),
            tensor_of<uint8_t>({2}, {1, 255}));
  EXPECT_EQ(run_meaning("cast", {tensor_of<Float16>({3}, {-1.5, 65504, 0})}, {{"to", DType::i32}}),
            tensor_of<int32_t>({3}, {-1, 65504, 0}));
}

}  // namespace
}  // namespace hetnn::ops
