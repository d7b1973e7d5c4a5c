// Index arithmetic of the reference meanings.
#include "hetnn/ops/evaluate.h"

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

std::vector<Tensor> map_real(const ir::Evaluation& e, const std::function<double(double)>& f) {
  return map_unary(e, [&](auto x) { return f(static_cast<double>(x)); });
}

}  // namespace hetnn::ops
