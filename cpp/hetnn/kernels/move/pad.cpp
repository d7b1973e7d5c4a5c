// pad: constant, reflect, replicate and circular, by an index table per axis.
#include "hetnn/ops/movement/pad.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "hetnn/base/convert.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/nest.h"
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

std::unique_ptr<Kernel> make_pad(const KernelCall& call) {
  if (call.inputs.empty() || call.outputs.size() != 1)
    throw InvalidModel("pad takes x and gives one output. Check the call against kernels/move/move.h.");
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  const std::string name = call.params.text("mode", "constant");
  const std::optional<PadMode> mode = ops::pad_mode_of(name);
  if (!mode)
    throw InvalidModel(
        text("pad: mode must be constant, reflect, replicate or circular; got ", name, ". Check the attribute."));
  const std::vector<int64_t> padding = call.params.integers("padding");
  const auto rank = static_cast<size_t>(x.rank);
  if (x.rank == 0 || y.rank != x.rank || padding.size() != 2 * rank || x.dtype != y.dtype)
    throw InvalidModel(text("pad: padding must have begin and end of each of the ", x.rank, " axes; got ",
                            padding.size(), " values for ", view_text(x), " and ", view_text(y),
                            ". Check the attribute."));
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t begin = padding[axis], end = padding[rank + axis], size = x.dims[axis];
    if (y.dims[axis] != size + begin + end)
      throw InvalidModel(text("pad: axis ", axis, " of the output must be ", size + begin + end, "; got ", y.dims[axis],
                              ". Infer the output's shape from the padding."));
    if (ops::pads_too_far(*mode, size, begin, end, y.elems()))
      throw InvalidModel(text("pad: axis ", axis, " of size ", size, " is too short for this padding; got ", begin,
                              " and ", end, ". Pad less, or with a constant."));
  }
  const double value = call.params.real("value", 0.0);
  if (is_stored(x.dtype)) throw Unsupported(text("pad of ", dtype_name(x.dtype), ". Use the operator's meaning."));
  const uint64_t fill = visit_dtype(x.dtype, [&](auto zero) {
    const auto element = convert<decltype(zero)>(value);
    uint64_t bits = 0;
    std::memcpy(&bits, &element, sizeof(element));
    return bits;
  });
  return std::make_unique<Pad>(call, *mode, std::vector<int64_t>(padding.begin(), padding.begin() + x.rank), fill);
}

}  // namespace hetnn::kernels
