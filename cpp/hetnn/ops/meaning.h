// What an operator computes, said once: the reference, the plain kernel and the folding of constants.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hetnn/base/convert.h"
#include "hetnn/base/stop.h"
#include "hetnn/base/tensor.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/ops/call.h"

namespace hetnn::ops {

/// An input as a meaning sees it: dense row-major values of a concrete shape. Absent: `data` is null and the rank 0.
struct View {
  DType dtype = DType::f32;
  std::span<const int64_t> shape;
  const std::byte* data = nullptr;

  View() = default;
  View(DType type, std::span<const int64_t> dims, const std::byte* bytes) : dtype(type), shape(dims), data(bytes) {}
  View(const Tensor& tensor)  // NOLINT(google-explicit-constructor): a tensor is a view that owns its bytes
      : dtype(tensor.dtype()), shape(tensor.shape()), data(tensor.data()) {}

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t elems() const;
  /// The values as T. InternalError when T is not the element type.
  template <typename T>
  std::span<const T> values() const {
    HETNN_ASSERT(DTypeOf<T>::value == dtype, "the view is ", dtype_name(dtype));
    return {reinterpret_cast<const T*>(data), static_cast<size_t>(elems())};
  }
};

/// The elements of a view, converted.
template <typename V>
std::vector<V> values_as(const View& view) {
  std::vector<V> out(static_cast<size_t>(view.elems()));
  ConvertElements(view.dtype, DTypeOf<V>::value)(view.data, reinterpret_cast<std::byte*>(out.data()), view.elems());
  return out;
}

/// Memory for an output, dense and row-major.
struct Result {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::byte* data = nullptr;

  int64_t elems() const { return View(dtype, shape, data).elems(); }
  template <typename T>
  T* values() const {
    HETNN_ASSERT(DTypeOf<T>::value == dtype, "the result is ", dtype_name(dtype));
    return reinterpret_cast<T*>(data);
  }
};

/// Writes all elements of a result, converted.
template <typename V>
void write_as(const Result& y, std::span<const V> values) {
  ConvertElements(DTypeOf<V>::value, y.dtype)(reinterpret_cast<const std::byte*>(values.data()), y.data, y.elems());
}

/// Where results go. The meaning asks for each output once, with the shape that it comes out with, so that sizes may
/// depend on values.
class Results {
 public:
  virtual ~Results() = default;
  /// Memory for elems(shape) elements, aligned to them; it need not be zeroed.
  virtual std::byte* allocate(size_t index, DType dtype, std::span<const int64_t> shape) = 0;
};

/// A body of calls, made ready to run round after round.
class RunningBody {
 public:
  virtual ~RunningBody() = default;
  /// What the body gives for its inputs; those that are the same in every round may be without data.
  virtual std::vector<Tensor> run(std::span<const View> inputs) = 0;
};

/// Makes bodies ready that a floor above has compiled.
class CompiledBodies {
 public:
  virtual ~CompiledBodies() = default;
  /// The body of a call that names a program; the call outlives it.
  virtual std::unique_ptr<RunningBody> open(const Call& call) const = 0;
};

/// What whoever runs meanings gives those that take long; all may be null.
struct Host {
  const Stop* stop = nullptr;                // asked whether to go on
  const CompiledBodies* compiled = nullptr;  // for calls that run others
};

/// What a meaning gets. The call's attributes and types hold no symbols (see bind); no input overlaps a result.
struct Evaluation {
  const Call& call;
  std::span<const View> inputs;
  Results& results;
  Host host = {};

  bool has(size_t index) const { return call.has(index); }
  /// A present input. InternalError when it is absent.
  const View& input(size_t index) const;
  /// Output `index` with the inferred type and shape.
  Result output(size_t index = 0) const;
  /// Output `index` with the inferred element type and a shape of its own.
  Result output(size_t index, std::vector<int64_t> shape) const;
};

/// A call with a value for every symbol, which owns its types.
class BoundCall {
 public:
  /// `call` with its attributes and input types under `bindings`; output types are inferred again. `op`, name, location
  /// and constants are the same.
  BoundCall(const Call& call, const Bindings& bindings);
  BoundCall(const BoundCall&) = delete;
  BoundCall& operator=(const BoundCall&) = delete;
  const Call& call() const { return call_; }

 private:
  std::vector<Type> types_;  // of inputs, then of outputs
  Call call_;
};

/// What the call writes for these inputs, by its operator's meaning; calls on quantized values compute on the reals
/// that they stand for, in f32, and round each result once to its scale. Absent inputs are views without data. Throws
/// what the host's `stop` does.
void evaluate(const Call& call, std::span<const View> inputs, Results& results, const Host& host = {});

/// The same into tensors, for a call that may hold symbols.
std::vector<Tensor> evaluate(const Call& call, std::span<const std::optional<Tensor>> inputs, const Bindings& bindings);

}  // namespace hetnn::ops
