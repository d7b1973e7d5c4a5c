// flat_index: indices along several axes as one index into all of them.
#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/move/indices.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/row_view.h"

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

std::unique_ptr<Kernel> make_flat_index(const KernelCall& call) {
  const std::vector<int64_t> sizes = call.params.integers("sizes");
  for (const TensorView& index : call.inputs) {
    if (index.layout != Layout::plain || index.elems() != call.outputs[0].elems() ||
        index.dtype != call.inputs[0].dtype || (index.dtype != DType::i64 && index.dtype != DType::i32))
      throw Unsupported(text("flat_index reads plain indices of i64 or i32, of one shape; got ", view_text(index),
                             ". Cast or expand them."));
  }
  if (sizes.empty() || sizes.size() != call.inputs.size() || call.outputs[0].layout != Layout::plain ||
      call.outputs[0].dtype != DType::i64)
    throw Unsupported(text("flat_index takes an index for each size and gives a plain i64; got ", call.inputs.size(),
                           " and ", sizes.size(), " sizes."));
  return std::make_unique<FlatIndex>(call, sizes);
}

}  // namespace hetnn::kernels
