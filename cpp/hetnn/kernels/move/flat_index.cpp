// flat_index: indices along several axes as one index into all of them.
#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/move/indices.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

class FlatIndex final : public Kernel {
 public:
  FlatIndex(const KernelCall& call, std::span<const int64_t> sizes) : count_(call.outputs[0].elems()) {
    for (const int64_t size : sizes) readings_.push_back({call.inputs[0].dtype == DType::i64, true, size});
  }

  bool serial() const override { return count_ < 4096; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* const y = reinterpret_cast<int64_t*>(outputs[0]);
    const Share share = share_of(count_, context.thread, context.threads);
    for (int64_t begin = share.begin; begin < share.end; begin += kIndexBlock) {
      const int64_t end = std::min(share.end, begin + kIndexBlock);
      for (size_t axis = 0; axis < readings_.size(); ++axis) {
        visit_indices(readings_[axis], inputs[axis], [&](const auto indices) {
          if (!indices.within(begin, end)) return context.refuse();
          if (axis == 0) {
            for (int64_t k = begin; k < end; ++k) y[k] = indices[k];
          } else {
            for (int64_t k = begin; k < end; ++k) y[k] = y[k] * indices.size + indices[k];
          }
        });
      }
    }
  }

 private:
  int64_t count_;
  std::vector<IndexReading> readings_;  // of every axis
};

}  // namespace

Refusal serves_flat_index(const KernelCall& call) {
  Terms terms("flat_index", call);
  terms.plain().is(call.outputs[0], DType::i64, "the result");
  for (const TensorView& index : call.inputs)
    terms.hold(is_index(index.dtype) && index.dtype == call.inputs[0].dtype && index.elems() == call.outputs[0].elems(),
               "takes indices of i64 or i32, all of one shape; got ", dtype_name(index.dtype), " ", view_text(index));
  return terms;
}

std::unique_ptr<Kernel> make_flat_index(const KernelCall& call) {
  const std::vector<int64_t> sizes = call.params.integers("sizes");
  return std::make_unique<FlatIndex>(call, sizes);
}

}  // namespace hetnn::kernels
