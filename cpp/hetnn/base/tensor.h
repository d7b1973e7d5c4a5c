// A dense constant tensor: shared, immutable bytes with a type and a concrete shape.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/base/error.h"
#include "hetnn/base/pages.h"

namespace hetnn {

/// Row-major values. Copies share the bytes; `owner` keeps foreign memory (a torch parameter, a mapped file) alive.
class Tensor {
 public:
  Tensor() = default;
  /// A view of foreign bytes that stay valid while `owner` lives.
  Tensor(DType dtype, std::vector<int64_t> shape, std::shared_ptr<const void> owner, const std::byte* data)
      : dtype_(dtype), shape_(std::move(shape)), owner_(std::move(owner)), data_(data) {}

  /// Zeroed storage of the given type and shape; the writable pointer goes to `mutable_data`.
  static Tensor zeros(DType dtype, std::vector<int64_t> shape, std::byte** mutable_data = nullptr) {
    int64_t count = 1;
    for (int64_t d : shape) count *= d;
    const auto size_bytes = static_cast<size_t>(count * dtype_bytes(dtype));
    const auto made = [&](auto bytes) {
      std::byte* const data = bytes->data();
      if (mutable_data) *mutable_data = data;
      return Tensor(dtype, std::move(shape), std::move(bytes), data);
    };
    return size_bytes < kOwnPages_bytes ? made(std::make_shared<std::vector<std::byte>>(size_bytes))
                                        : made(std::make_shared<Pages>(size_bytes));
  }
  template <typename T>
  static Tensor of(std::vector<int64_t> shape, std::span<const T> values) {
    std::byte* data = nullptr;
    Tensor tensor = zeros(DTypeOf<T>::value, std::move(shape), &data);
    HETNN_ASSERT(tensor.elems() == static_cast<int64_t>(values.size()));
    if (!values.empty()) std::memcpy(data, values.data(), values.size_bytes());
    return tensor;
  }
  template <typename T>
  static Tensor of(std::vector<int64_t> shape, const std::vector<T>& values) {
    return of(std::move(shape), std::span<const T>(values));
  }
  template <typename T>
  static Tensor scalar(T value) {
    return of({}, std::span<const T>(&value, 1));
  }

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t elems() const {
    int64_t count = 1;
    for (int64_t d : shape_) count *= d;
    return count;
  }
  int64_t bytes() const { return elems() * dtype_bytes(dtype_); }
  const std::byte* data() const { return data_; }
  std::span<const std::byte> span() const { return {data_, static_cast<size_t>(bytes())}; }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  /// The values as T; InternalError when T is not the element type.
  template <typename T>
  std::span<const T> values() const {
    HETNN_ASSERT(DTypeOf<T>::value == dtype_, "tensor is ", dtype_name(dtype_));
    return {reinterpret_cast<const T*>(data_), static_cast<size_t>(elems())};
  }
  /// The same bytes under another shape of as many elements.
  Tensor reshaped(std::vector<int64_t> shape) const {
    Tensor out = *this;
    out.shape_ = std::move(shape);
    HETNN_ASSERT(out.elems() == elems());
    return out;
  }
  /// Lets go of the bytes: type and shape are left.
  void forget() {
    owner_.reset();
    data_ = nullptr;
  }
  /// Bitwise equality of type, shape and values.
  bool operator==(const Tensor& other) const {
    return dtype_ == other.dtype_ && shape_ == other.shape_ &&
           (data_ == other.data_ || bytes() == 0 || std::memcmp(data_, other.data_, static_cast<size_t>(bytes())) == 0);
  }

 private:
  // From this size on memory of its own goes back to the system as soon as nobody needs it.
  static constexpr size_t kOwnPages_bytes = size_t{1} << 20;

  DType dtype_ = DType::f32;
  std::vector<int64_t> shape_ = {0};
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
};

}  // namespace hetnn
