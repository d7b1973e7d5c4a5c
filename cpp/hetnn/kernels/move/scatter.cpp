// scatter_elements: elements or whole rows put into x, or joined with what stands there.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "hetnn/base/error.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/move/indices.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

// Integers wrap.
template <typename T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

struct Put {
  template <typename T>
  T operator()(T, T update) const {
    return update;
  }
};
struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
// NaN wins.
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return a != a ? a : a < b || b != b ? b : a;
  }
};
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return a != a ? a : a > b || b != b ? b : a;
  }
};

template <typename T, typename Join>
class ScatterElements final : public Kernel {
 public:
  ScatterElements(const KernelCall& call, const AxisSplit& split)
      : split_(split),
        wide_(call.inputs[1].dtype == DType::i64),
        by_row_(call.inputs[1].elems() == split.count && call.inputs[1].elems() != call.inputs[2].elems()) {}

  bool serial() const override { return split_.outer * std::max(split_.count, split_.size) * split_.inner < 32768; }
  bool in_place(int input) const override { return input == 0; }

  // Each thread has whole lanes, so that later updates of an element come later.
  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const bool by_outer = split_.outer >= context.threads;
    const Share share = share_of(by_outer ? split_.outer : split_.inner, context.thread, context.threads);
    const Share outers = by_outer ? share : Share{0, split_.outer}, inners = by_outer ? Share{0, split_.inner} : share;
    wide_ ? put(outers, inners, reinterpret_cast<const int64_t*>(inputs[1]), inputs, outputs[0])
          : put(outers, inners, reinterpret_cast<const int32_t*>(inputs[1]), inputs, outputs[0]);
  }

 private:
  template <typename Index>
  void put(Share outers, Share inners, const Index* indices, const std::byte* const* inputs, std::byte* output) const {
    const AxisSplit split = split_;  // what is written is none of it
    const auto* x = reinterpret_cast<const T*>(inputs[0]);
    const auto* updates = reinterpret_cast<const T*>(inputs[2]);
    auto* y = reinterpret_cast<T*>(output);
    const int64_t width = inners.end - inners.begin;
    const auto each_row = [&](int64_t rows, auto f) {  // whole rows lie one behind another
      if (width == split.inner) return f(int64_t{0}, rows * width);
      for (int64_t k = 0; k < rows; ++k) f(k * split.inner + inners.begin, width);
    };
    for (int64_t o = outers.begin; o < outers.end; ++o) {
      const T* from = x + o * split.size * split.inner;
      T* to = y + o * split.size * split.inner;
      if (from != to) each_row(split.size, [&](int64_t at, int64_t count) { std::copy_n(from + at, count, to + at); });
      const int64_t first = o * split.count;
      if (by_row_) {
        for (int64_t k = 0; k < split.count; ++k)
          join_row(to + position(indices[k], split.size) * split.inner + inners.begin,
                   updates + (first + k) * split.inner + inners.begin, width);
        continue;
      }
      for (int64_t k = 0; k < split.count; ++k) {
        const Index* at = indices + (first + k) * split.inner;
        const T* update = updates + (first + k) * split.inner;
        for (int64_t i = inners.begin; i < inners.end; ++i) {
          T& element = to[position(at[i], split.size) * split.inner + i];
          element = Join()(element, update[i]);
        }
      }
    }
  }

  static void join_row(T* to, const T* update, int64_t width) {
    for (int64_t i = 0; i < width; ++i) to[i] = Join()(to[i], update[i]);
  }

  AxisSplit split_;
  bool wide_, by_row_;
};

template <typename T>
std::unique_ptr<Kernel> make_join(std::string_view reduce, const KernelCall& call, const AxisSplit& split) {
  if (reduce == "add") return std::make_unique<ScatterElements<T, Add>>(call, split);
  if (reduce == "mul") return std::make_unique<ScatterElements<T, Multiply>>(call, split);
  if (reduce == "max") return std::make_unique<ScatterElements<T, Max>>(call, split);
  if (reduce == "min") return std::make_unique<ScatterElements<T, Min>>(call, split);
  throw Unsupported(text("scatter_elements: no kernel joins by ", reduce, "; those there are: add, mul, max, min."));
}

}  // namespace

std::unique_ptr<Kernel> make_scatter_elements(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &updates = call.inputs[2], &y = call.outputs[0];
  const AxisSplit split = axis_split("scatter_elements", call, x, updates);
  if (x.dtype != y.dtype || x.dtype != updates.dtype || !std::ranges::equal(x.shape(), y.shape()))
    throw InvalidModel(text("scatter_elements: the output must be as x, and the updates of its type; got ",
                            view_text(y), " of x ", view_text(x), ". Infer the output's shape."));
  if (!std::ranges::equal(indices.shape(), updates.shape()) &&
      (indices.elems() != split.count || (split.outer != 1 && split.count != 0)))
    throw Unsupported(text("scatter_elements takes an index for each update or for each row; got ", view_text(indices),
                           " and updates ", view_text(updates), ". Expand the indices."));
  const std::string reduce = call.params.text("reduce", "none");
  if (reduce == "none")
    return visit_width(x.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
      return std::make_unique<ScatterElements<decltype(zero), Put>>(call, split);
    });
  if (call.params.integer("include_self", 1) != 0 && x.dtype == DType::f32)
    return make_join<float>(reduce, call, split);
  if (call.params.integer("include_self", 1) != 0 && x.dtype == DType::i64)
    return make_join<int64_t>(reduce, call, split);
  throw Unsupported(text("scatter_elements joins f32 and i64 with the elements of x; got ", view_text(x),
                         ". Its meaning computes the rest."));
}

}  // namespace hetnn::kernels
