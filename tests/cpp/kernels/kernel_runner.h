// Runs kernels by name on tensors given in logical order, over every instruction set and several thread counts.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/base/parallel.h"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/nest.h"
#include "run_meaning.h"

namespace hetnn::kernels::testing {

/// A tensor of any type and layout whose elements are written and read as doubles in logical order.
struct Tensor {
  TensorView view;
  std::vector<double> values;
};

inline Tensor plain(std::vector<int64_t> shape, std::vector<double> values, DType dtype = DType::f32) {
  return {TensorView::plain(dtype, shape), std::move(values)};
}

inline std::vector<double> random_values(int64_t count, unsigned seed, double low = -1, double high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(static_cast<float>(low), static_cast<float>(high));
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = distribution(generator);
  return values;
}

/// Of at most 8 bits, which f16 and bf16 hold.
inline std::vector<double> short_values(int64_t count, unsigned seed) {
  std::vector<double> out = random_values(count, seed);
  for (double& value : out) value = std::round(value * 128) / 128;
  return out;
}

inline Tensor random_plain(std::vector<int64_t> shape, unsigned seed) {
  Tensor tensor{TensorView::plain(DType::f32, shape), {}};
  tensor.values = random_values(tensor.view.elems(), seed);
  return tensor;
}

inline Tensor random_nhwc(std::vector<int64_t> shape, unsigned seed, int64_t extra_pitch = 0) {
  Tensor tensor{TensorView::nhwc(DType::f32, shape, shape[1] + extra_pitch), {}};
  tensor.values = random_values(tensor.view.elems(), seed);
  return tensor;
}

inline double read_element(DType dtype, const std::byte* at) {
  const auto as = [at]<typename T>(T value) {
    std::memcpy(&value, at, sizeof(T));
    return static_cast<double>(value);
  };
  switch (dtype) {
    case DType::f32:
      return as(float());
    case DType::f64:
      return as(double());
    case DType::f16:
    case DType::bf16:
      return static_cast<double>(widen_float(dtype, static_cast<uint16_t>(as(uint16_t()))));
    case DType::i64:
      return as(int64_t());
    case DType::i32:
      return as(int32_t());
    case DType::i8:
      return as(int8_t());
    case DType::u8:
    case DType::boolean:
      return as(uint8_t());
    default:
      ADD_FAILURE() << "unexpected dtype";
      return 0;
  }
}

inline void write_element(DType dtype, std::byte* at, double value) {
  const auto as = [at](auto element) { std::memcpy(at, &element, sizeof(element)); };
  switch (dtype) {
    case DType::f32:
      return as(static_cast<float>(value));
    case DType::f64:
      return as(value);
    case DType::f16:
    case DType::bf16:
      return as(narrow_float(dtype, static_cast<float>(value)));
    case DType::i64:
      return as(static_cast<int64_t>(value));
    case DType::i32:
      return as(static_cast<int32_t>(value));
    case DType::i8:
      return as(static_cast<int8_t>(value));
    case DType::u8:
    case DType::boolean:
      return as(static_cast<uint8_t>(value));
    default:
      ADD_FAILURE() << "unexpected dtype";
  }
}

/// What an operator means for these values, in f64: beside it the roundings of a kernel show. Truth values stay such.
/// Results of i64 come as reals, too.
inline std::vector<std::vector<double>> all_meanings(std::string_view op, const std::vector<Tensor>& inputs,
                                                     ops::Attrs attrs = {}) {
  std::vector<std::optional<hetnn::Tensor>> operands;
  for (const Tensor& input : inputs) {
    const std::vector<int64_t> shape(input.view.shape().begin(), input.view.shape().end());
    const bool truth = input.view.dtype == DType::boolean;
    std::byte* data = nullptr;
    operands.emplace_back(hetnn::Tensor::zeros(truth ? DType::boolean : DType::f64, shape, &data));
    const auto fill = [&](auto* to) { std::copy(input.values.begin(), input.values.end(), to); };
    truth ? fill(reinterpret_cast<bool*>(data)) : fill(reinterpret_cast<double*>(data));
  }
  std::vector<std::vector<double>> out;
  for (const hetnn::Tensor& values : run_meanings(op, operands, std::move(attrs))) {
    if (values.dtype() == DType::i64) {
      out.emplace_back(values.values<int64_t>().begin(), values.values<int64_t>().end());
    } else {
      out.emplace_back(values.values<double>().begin(), values.values<double>().end());
    }
  }
  return out;
}

/// The first of them.
inline std::vector<double> meaning(std::string_view op, const std::vector<Tensor>& inputs, ops::Attrs attrs = {}) {
  return all_meanings(op, inputs, std::move(attrs)).front();
}

/// Integers as an attribute.
inline std::vector<Dim> dims_of(const std::vector<int64_t>& values) { return {values.begin(), values.end()}; }

/// Visits all elements of a view in logical order: f(index, byte offset).
template <typename F>
void for_elements(const TensorView& view, F f) {
  const auto strides = strides_of(view);
  const int64_t count = view.elems();
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    for (int axis = view.rank - 1; axis >= 0; --axis) {
      offset += rest % view.dims[static_cast<size_t>(axis)] * strides[static_cast<size_t>(axis)];
      rest /= view.dims[static_cast<size_t>(axis)];
    }
    f(i, offset * dtype_bytes(view.dtype));
  }
}

/// Bytes of a tensor in its layout. The exact span is followed by guard bytes; gaps between pixels hold NaN.
inline constexpr int64_t kGuard_bytes = 64;
inline constexpr std::byte kGuard{0xff};

inline AlignedBuffer to_bytes(const TensorView& view, const std::vector<double>* values) {
  AlignedBuffer buffer(static_cast<size_t>(view.span_bytes() + kGuard_bytes));
  std::memset(buffer.data(), static_cast<int>(kGuard), buffer.size_bytes());
  if (values != nullptr)
    for_elements(view, [&](int64_t i, int64_t at) {
      write_element(view.dtype, buffer.data() + at, (*values)[static_cast<size_t>(i)]);
    });
  return buffer;
}

struct RunOptions {
  int threads = 1;
  std::vector<Step> steps = {};
  bool packs_in_run = false;  // weights are given as they are
};

/// Makes and runs the kernel; inputs that its family calls weights are packed first, or, where asked, by its run.
/// Checks that nothing but the elements of the outputs was written. Returns the outputs' elements in logical order.
inline std::vector<std::vector<double>> run_kernel(const std::string& name, const std::vector<Tensor>& inputs,
                                                   const std::vector<TensorView>& outputs, const Params& params,
                                                   const RunOptions& options = {}) {
  const Variant* family = find_kernel(name);
  if (family == nullptr) {
    ADD_FAILURE() << "no kernel is named " << name;
    return {};
  }
  std::vector<TensorView> views;
  for (const Tensor& input : inputs) views.push_back(input.view);
  std::vector<AlignedBuffer> buffers;
  std::vector<TensorView> call_views = views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const KernelCall call{views, outputs, params, options.steps};
    if (!options.packs_in_run && family->is_weight != nullptr && family->is_weight(call, static_cast<int>(i))) {
      const AlignedBuffer weight = to_bytes(views[i], &inputs[i].values);
      const std::vector<std::byte> packed =
          family->pack(call, static_cast<int>(i), {weight.data(), static_cast<size_t>(views[i].span_bytes())});
      AlignedBuffer copy(packed.size());
      std::memcpy(copy.data(), packed.data(), packed.size());
      buffers.push_back(std::move(copy));
      call_views[i] = TensorView::of_weight(views[i].dtype, views[i].shape());
    } else {
      buffers.push_back(to_bytes(views[i], &inputs[i].values));
    }
  }
  std::vector<AlignedBuffer> results;
  for (const TensorView& view : outputs) results.push_back(to_bytes(view, nullptr));
  const std::unique_ptr<Kernel> kernel = make_kernel(*family, {call_views, outputs, params, options.steps});
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
  for (const AlignedBuffer& buffer : buffers) in.push_back(buffer.data());
  for (const AlignedBuffer& buffer : results) out.push_back(buffer.data());
  // serial() is advice to the caller; the kernel must be right either way.
  const int threads = options.threads;
  AlignedBuffer scratch(static_cast<size_t>(kernel->scratch_bytes(threads)));
  // Stale scratch must not matter.
  std::memset(scratch.data(), 0xff, scratch.size_bytes());
  SpinBarrier barrier(threads);
  parallel_region(threads, [&](int thread) {
    kernel->run({thread, threads, barrier, scratch.data()}, in.data(), out.data());
  });
  if (const std::optional<int64_t> view = kernel->view()) {
    EXPECT_LE(*view + outputs[0].span_bytes(), inputs[0].view.span_bytes()) << name;
    for_elements(outputs[0], [&](int64_t e, int64_t at) {
      EXPECT_EQ(std::memcmp(in[0] + *view + at, out[0] + at, static_cast<size_t>(dtype_bytes(outputs[0].dtype))), 0)
          << name << " says that element " << e << " stands where it does not";
    });
  }
  // Parts that lie in the output are left there, and the others still come to their places.
  for (const Part& part : kernel->parts()) {
    const TensorView& view = inputs[static_cast<size_t>(part.input)].view;
    EXPECT_GE(part.offset_bytes, 0) << name;
    EXPECT_LE(part.offset_bytes + view.span_bytes(), outputs[0].span_bytes()) << name;
    for_elements(view, [&](int64_t e, int64_t at) {
      EXPECT_EQ(std::memcmp(in[static_cast<size_t>(part.input)] + at, out[0] + part.offset_bytes + at,
                            static_cast<size_t>(dtype_bytes(view.dtype))),
                0)
          << name << " says that element " << e << " of input " << part.input << " stands where it does not";
    });
    in[static_cast<size_t>(part.input)] = out[0] + part.offset_bytes;
  }
  if (!kernel->parts().empty()) {
    parallel_region(threads, [&](int thread) {
      kernel->run({thread, threads, barrier, scratch.data()}, in.data(), out.data());
    });
  }
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::vector<double> elements(static_cast<size_t>(outputs[i].elems()));
    std::vector<bool> written(static_cast<size_t>(outputs[i].span_bytes() + kGuard_bytes));
    for_elements(outputs[i], [&](int64_t e, int64_t at) {
      elements[static_cast<size_t>(e)] = read_element(outputs[i].dtype, out[i] + at);
      for (int64_t b = 0; b < dtype_bytes(outputs[i].dtype); ++b) written[static_cast<size_t>(at + b)] = true;
    });
    int64_t strays = 0;
    for (size_t at = 0; at < written.size(); ++at) strays += !written[at] && out[i][at] != kGuard;
    EXPECT_EQ(strays, 0) << name << " wrote " << strays << " bytes outside the elements of output " << i;
    values.push_back(std::move(elements));
  }
  return values;
}

/// Equal within `tolerance` times the largest expected magnitude; infinities and NaN must coincide.
inline void expect_close(const std::vector<double>& found, const std::vector<double>& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double scale = 1e-30;
  for (const double value : expected)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(found[i]) : found[i] == expected[i])
          << what << ": element " << i << " is " << found[i] << ", expected " << expected[i];
    } else {
      ASSERT_LE(std::abs(found[i] - expected[i]), tolerance * scale)
          << what << ": element " << i << " is " << found[i] << ", expected " << expected[i];
    }
  }
}

/// Bit for bit, NaN included.
inline void expect_same(const std::vector<double>& found, const std::vector<double>& expected,
                        const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  ASSERT_TRUE(found.empty() || std::memcmp(found.data(), expected.data(), found.size() * sizeof(double)) == 0) << what;
}

/// Runs on every instruction set, compares with `expected`, and checks that 2 and 3 threads give the same bits as 1.
inline void check_kernel(const std::string& name, const std::vector<Tensor>& inputs,
                         const std::vector<TensorView>& outputs, const Params& params,
                         const std::vector<std::vector<double>>& expected, double tolerance, const std::string& what,
                         const std::vector<Step>& steps = {}) {
  for (const std::string& isa : available_isas()) {
    restrict_isa(isa);
    const auto one = run_kernel(name, inputs, outputs, params, {.steps = steps});
    ASSERT_EQ(one.size(), expected.size());
    for (size_t i = 0; i < one.size(); ++i) expect_close(one[i], expected[i], tolerance, what + " on " + isa);
    for (const int threads : {2, 3}) {
      const auto more = run_kernel(name, inputs, outputs, params, {.threads = threads, .steps = steps});
      for (size_t i = 0; i < one.size(); ++i)
        expect_same(more[i], one[i], what + " on " + isa + " with " + std::to_string(threads) + " threads");
    }
    const bool can_pack = find_kernel(name) != nullptr && find_kernel(name)->packer != nullptr;
    for (const int threads : can_pack ? std::vector<int>{1, 3} : std::vector<int>()) {
      const auto given = run_kernel(name, inputs, outputs, params, {threads, steps, true});
      for (size_t i = 0; i < one.size(); ++i)
        expect_same(given[i], one[i], what + " on " + isa + " with weights packed by " + std::to_string(threads));
    }
    if (::testing::Test::HasFatalFailure()) break;
  }
  restrict_isa("");
}

}  // namespace hetnn::kernels::testing
