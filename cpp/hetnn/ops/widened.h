// Elements in the type that they are computed in.
#pragma once

#include <vector>

#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// The elements of a view of Ts as Wide<T>: f16 and bf16 converted once, all others where they are.
template <typename T>
class Widened {
 public:
  explicit Widened(const View& view) {
    const auto values = view.values<T>();
    if constexpr (kIsNarrowFloat<T>) {
      converted_.assign(values.begin(), values.end());
      data_ = converted_.data();
    } else {
      data_ = values.data();
    }
  }
  Widened(const Widened&) = delete;
  Widened& operator=(const Widened&) = delete;
  const Wide<T>* data() const { return data_; }
  Wide<T> operator[](int64_t at) const { return data_[at]; }

 private:
  std::vector<float> converted_;
  const Wide<T>* data_;
};

}  // namespace hetnn::ops
