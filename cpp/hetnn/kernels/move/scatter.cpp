// scatter_elements: elements or whole rows put into x, or joined with what stands there.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "hetnn/base/error.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/move/indices.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/query/terms.h"
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
        indices_(index_reading(call, split.size)),
        by_row_(call.inputs[1].elems() == split.count && call.inputs[1].elems() != call.inputs[2].elems()) {}

  bool serial() const override { return split_.outer * std::max(split_.count, split_.size) * split_.inner < 32768; }

  // Each thread has whole lanes, so that later updates of an element come later.
  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* x = reinterpret_cast<const T*>(inputs[0]);
    const auto* updates = reinterpret_cast<const T*>(inputs[2]);
    auto* y = reinterpret_cast<T*>(outputs[0]);
    // Of fewer lanes all threads copy the rest of x, and some then put.
    if (std::max(split_.outer, split_.inner) < context.threads) {
      const Share part = share_of(split_.outer * split_.size * split_.inner, context.thread, context.threads);
      std::copy(x + part.begin, x + part.end, y + part.begin);
      context.barrier.arrive_and_wait();
      x = nullptr;
    }
    const bool by_outer = split_.outer >= context.threads || split_.inner == 1;
    const Share share = share_of(by_outer ? split_.outer : split_.inner, context.thread, context.threads);
    const Share outers = by_outer ? share : Share{0, split_.outer}, inners = by_outer ? Share{0, split_.inner} : share;
    visit_indices(indices_, inputs[1], [&](const auto indices) {
      const bool all_within = by_row_             ? put_rows(indices, inners, x, updates, y)
                              : split_.inner == 1 ? put_lanes(indices, outers, x, updates, y)
                                                  : put(indices, outers, inners, x, updates, y);
      if (!all_within) context.refuse();
    });
  }

 private:
  // The rest of x, of one index along the outer axes; null where it is there.
  void copy(int64_t outer, Share inners, const T* x, T* y) const {
    if (!x) return;
    const int64_t begin = outer * split_.size * split_.inner, width = inners.end - inners.begin;
    if (width == split_.inner) {
      std::copy_n(x + begin, split_.size * width, y + begin);
      return;
    }
    for (int64_t at = begin + inners.begin; at < begin + split_.size * split_.inner; at += split_.inner)
      std::copy_n(x + at, width, y + at);
  }

  template <typename Indices>
  bool put_rows(const Indices& indices, Share inners, const T* x, const T* updates, T* y) const {
    copy(0, inners, x, y);
    if (!indices.within(0, split_.count)) return false;
    for (int64_t k = 0; k < split_.count; ++k)
      join_row(y + indices[k] * split_.inner + inners.begin, updates + k * split_.inner + inners.begin,
               inners.end - inners.begin);
    return true;
  }

  // Along the last axis.
  template <typename Indices>
  bool put_lanes(const Indices& indices, Share outers, const T* x, const T* updates, T* y) const {
    const AxisSplit split = split_;  // what is written is none of it
    for (int64_t o = outers.begin; o < outers.end; ++o) {
      copy(o, {0, 1}, x, y);
      T* to = y + o * split.size;
      for (int64_t begin = o * split.count, last = begin + split.count; begin < last; begin += kIndexBlock) {
        const int64_t end = std::min(last, begin + kIndexBlock);
        if (!indices.within(begin, end)) return false;
        each_index(begin, end, [&](int64_t k) { to[indices[k]] = Join()(to[indices[k]], updates[k]); });
      }
    }
    return true;
  }

  template <typename Indices>
  bool put(const Indices& indices, Share outers, Share inners, const T* x, const T* updates, T* y) const {
    const AxisSplit split = split_;
    for (int64_t o = outers.begin; o < outers.end; ++o) {
      copy(o, inners, x, y);
      T* to = y + o * split.size * split.inner;
      for (int64_t k = 0; k < split.count; ++k) {
        const int64_t row = (o * split.count + k) * split.inner;
        if (!indices.within(row + inners.begin, row + inners.end)) return false;
        for (int64_t i = inners.begin; i < inners.end; ++i) {
          T& element = to[indices[row + i] * split.inner + i];
          element = Join()(element, updates[row + i]);
        }
      }
    }
    return true;
  }

  static void join_row(T* to, const T* update, int64_t width) {
    for (int64_t i = 0; i < width; ++i) to[i] = Join()(to[i], update[i]);
  }

  AxisSplit split_;
  IndexReading indices_;
  bool by_row_;
};

template <typename T>
std::unique_ptr<Kernel> make_join(std::string_view reduce, const KernelCall& call, const AxisSplit& split) {
  if (reduce == "add") return std::make_unique<ScatterElements<T, Add>>(call, split);
  if (reduce == "mul") return std::make_unique<ScatterElements<T, Multiply>>(call, split);
  if (reduce == "max") return std::make_unique<ScatterElements<T, Max>>(call, split);
  HETNN_ASSERT(reduce == "min", reduce);
  return std::make_unique<ScatterElements<T, Min>>(call, split);
}

}  // namespace

Refusal serves_scatter_elements(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &updates = call.inputs[2];
  Terms terms("scatter_elements", call);
  terms.hold(serves_along_axis("scatter_elements", call, x, updates));
  if (!terms.met()) return terms;
  const AxisSplit split = axis_split(call, x, updates);
  const std::string reduce = call.params.text("reduce", "none");
  const bool joins = reduce == "add" || reduce == "mul" || reduce == "max" || reduce == "min";
  return terms
      .hold(std::ranges::equal(indices.shape(), updates.shape()) ||
                (indices.elems() == split.count && (split.outer == 1 || split.count == 0)),
            "takes an index for each update or for each row; got ", view_text(indices), " and updates ",
            view_text(updates))
      .hold(reduce == "none" || (joins && call.params.integer("include_self", 1) != 0 &&
                                 (x.dtype == DType::f32 || x.dtype == DType::i64)),
            "adds, multiplies and takes the largest or the least of f32 and i64 and the elements of x; got ", reduce,
            " of ", dtype_name(x.dtype));
}

std::unique_ptr<Kernel> make_scatter_elements(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const AxisSplit split = axis_split(call, x, call.inputs[2]);
  const std::string reduce = call.params.text("reduce", "none");
  if (reduce == "none")
    return visit_width(x.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
      return std::make_unique<ScatterElements<decltype(zero), Put>>(call, split);
    });
  return x.dtype == DType::f32 ? make_join<float>(reduce, call, split) : make_join<int64_t>(reduce, call, split);
}

}  // namespace hetnn::kernels
