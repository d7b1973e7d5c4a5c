// pad: constant, reflect, replicate and circular, by an index table per axis.
#include "hetnn/ops/movement/pad.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "hetnn/base/convert.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

using ops::PadMode;

class Pad final : public Kernel {
 public:
  Pad(const KernelCall& call, PadMode mode, const std::vector<int64_t>& begin, uint64_t fill)
      : y_(call.outputs[0]), fill_(fill), x_strides_(strides_of(call.inputs[0])), y_strides_(strides_of(y_)) {
    for (size_t axis = 0; axis < begin.size(); ++axis) {
      offsets_.push_back(ops::pad_sources(mode, call.inputs[0].dims[axis], begin[axis], y_.dims[axis]));
      for (int64_t& from : offsets_.back()) from = from < 0 ? -1 : from * x_strides_[axis];
    }
    // Axes in the output's storage order, the densest last.
    for (size_t axis = 0; axis < begin.size(); ++axis) order_.push_back(axis);
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return y_strides_[a] > y_strides_[b]; });
  }

  bool serial() const override { return y_.elems() < 8192; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    visit_width(y_.dtype, [&](auto zero) {
      using T = decltype(zero);
      pad(context, reinterpret_cast<const T*>(inputs[0]), reinterpret_cast<T*>(outputs[0]));
    });
  }

 private:
  template <typename T>
  void pad(const RunContext& context, const T* x, T* y) const {
    const T fill = static_cast<T>(fill_);
    const size_t last = order_.back();
    const int64_t cols = y_.dims[last];
    const int64_t rows = cols == 0 ? 0 : y_.elems() / cols;
    const Share share = share_of(rows, context.thread, context.threads);
    for (int64_t row = share.begin; row < share.end; ++row) {
      int64_t rest = row, from = 0, to = 0;
      bool outside = false;
      for (size_t i = order_.size() - 1; i-- > 0;) {
        const size_t axis = order_[i];
        const auto index = static_cast<size_t>(rest % y_.dims[axis]);
        rest /= y_.dims[axis];
        to += static_cast<int64_t>(index) * y_strides_[axis];
        if (offsets_[axis][index] < 0) {
          outside = true;
        } else {
          from += offsets_[axis][index];
        }
      }
      const std::vector<int64_t>& columns = offsets_[last];
      const int64_t step = y_strides_[last];
      for (int64_t c = 0; c < cols; ++c) {
        const int64_t column = columns[static_cast<size_t>(c)];
        y[to + c * step] = outside || column < 0 ? fill : x[from + column];
      }
    }
  }

  TensorView y_;
  uint64_t fill_;
  std::array<int64_t, 8> x_strides_, y_strides_;
  std::vector<std::vector<int64_t>> offsets_;  // per axis and output index: input elements, or -1
  std::vector<size_t> order_;
};

}  // namespace

Refusal serves_pad(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const std::optional<PadMode> mode = ops::pad_mode_of(call.params.text("mode", "constant"));
  const std::vector<int64_t> padding = call.params.integers("padding");
  const auto rank = static_cast<size_t>(x.rank);
  Terms terms("pad", call);
  terms.hold(!is_stored(x.dtype), "pads what is computed in; got ", dtype_name(x.dtype))
      .hold(rank > 0 && mode && padding.size() == 2 * rank,
            "takes one axis or more, and a border on either side of it");
  for (size_t axis = 0; terms.met() && axis < rank; ++axis)
    terms.hold(!ops::pads_too_far(*mode, x.dims[axis], padding[axis], padding[rank + axis], y.elems()),
               "takes borders that x can fill; got ", view_text(x), " with ", padding[axis], " before and ",
               padding[rank + axis], " behind axis ", axis);
  return terms;
}

std::unique_ptr<Kernel> make_pad(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const PadMode mode = *ops::pad_mode_of(call.params.text("mode", "constant"));
  const std::vector<int64_t> padding = call.params.integers("padding");
  const double value = call.params.real("value", 0.0);
  const uint64_t fill = visit_dtype(x.dtype, [&](auto zero) {
    const auto element = convert<decltype(zero)>(value);
    uint64_t bits = 0;
    std::memcpy(&bits, &element, sizeof(element));
    return bits;
  });
  return std::make_unique<Pad>(call, mode, std::vector<int64_t>(padding.begin(), padding.begin() + x.rank), fill);
}

}  // namespace hetnn::kernels
