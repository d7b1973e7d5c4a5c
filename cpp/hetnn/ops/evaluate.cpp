// Index arithmetic of the reference meanings.
#include "hetnn/ops/evaluate.h"

#include "hetnn/ops/infer.h"

namespace hetnn::ops {

std::vector<int64_t> strides_of(const std::vector<int64_t>& shape) {
  std::vector<int64_t> out(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;) out[k - 1] = out[k] * shape[k];
  return out;
}

std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  const std::vector<int64_t> strides = strides_of(from);
  std::vector<int64_t> out(to.size(), 0);
  const size_t offset = to.size() - from.size();
  for (size_t k = 0; k < from.size(); ++k) out[offset + k] = from[k] == 1 ? 0 : strides[k];
  return out;
}

void for_each_index(const std::vector<int64_t>& shape, const std::function<void(const std::vector<int64_t>&)>& f) {
  for (int64_t d : shape) {
    if (d == 0) return;
  }
  std::vector<int64_t> index(shape.size(), 0);
  for (;;) {
    f(index);
    size_t k = shape.size();
    while (k > 0 && ++index[k - 1] == shape[k - 1]) index[--k] = 0;
    if (k == 0) return;
  }
}

Tensor gather_strided(const Tensor& x, const std::vector<int64_t>& shape, int64_t first,
                      const std::vector<int64_t>& strides) {
  const int64_t size = dtype_bytes(x.dtype());
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), shape, &data);
  for_each_index(shape, [&](const std::vector<int64_t>& index) {
    int64_t at = first;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    std::memcpy(data, x.data() + at * size, static_cast<size_t>(size));
    data += size;
  });
  return y;
}

std::vector<Tensor> reduce_real(const Evaluation& e, double initial,
                                const std::function<double(double, double)>& step,
                                const std::function<double(double, int64_t)>& finish, std::optional<DType> out) {
  const Tensor& x = e.input(0);
  const std::vector<int64_t>& in = x.shape();
  std::vector<int64_t> kept = in;
  for (int axis : reduced_axes(e.call)) kept[static_cast<size_t>(axis)] = 1;
  const std::vector<int64_t> strides = broadcast_strides(kept, in);
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(out.value_or(x.dtype()), e.output_shape(), &data);
  std::vector<double> folded(static_cast<size_t>(y.elems()), initial);
  visit_dtype(x.dtype(), [&](auto zero) {
    const auto values = x.values<decltype(zero)>();
    size_t at = 0;
    for_each_index(in, [&](const std::vector<int64_t>& index) {
      int64_t to = 0;
      for (size_t d = 0; d < index.size(); ++d) to += index[d] * strides[d];
      double& cell = folded[static_cast<size_t>(to)];
      cell = step(cell, static_cast<double>(values[at++]));
    });
  });
  const int64_t count = y.elems() == 0 ? 0 : x.elems() / y.elems();
  visit_dtype(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (size_t k = 0; k < folded.size(); ++k) mutable_values<T>(data)[k] = static_cast<T>(finish(folded[k], count));
  });
  return {y};
}

std::vector<Tensor> map_real(const Evaluation& e, const std::function<double(double)>& f) {
  return map_unary(e, [&](auto x) { return f(static_cast<double>(x)); });
}

}  // namespace hetnn::ops
