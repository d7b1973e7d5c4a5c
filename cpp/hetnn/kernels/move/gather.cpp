// gather: slices of x chosen by an index tensor (index_select, embedding); gather_elements: single elements.
#include <algorithm>
#include <cstring>

#include "hetnn/base/error.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/move/indices.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/move/pick.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kPanel = 16;  // of a plan's vectors

class Gather final : public Kernel {
 public:
  Gather(const KernelCall& call, size_t axis) {
    const TensorView& x = call.inputs[0];
    for (size_t a = 0; a < axis; ++a) outer_ *= x.dims[a];
    slice_bytes_ = dtype_bytes(x.dtype);
    for (size_t a = axis + 1; a < static_cast<size_t>(x.rank); ++a) slice_bytes_ *= x.dims[a];
    size_ = x.dims[axis];
    count_ = call.inputs[1].elems();
    indices_ = index_reading(call, size_);
  }

  bool serial() const override { return outer_ * count_ * slice_bytes_ < 32768; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    visit_indices(indices_, inputs[1], [&](const auto indices) {
      const Share share = share_of(outer_ * count_, context.thread, context.threads);
      for (int64_t item = share.begin; item < share.end;) {
        const int64_t outer = item / count_, begin = item % count_;
        const int64_t end = std::min({count_, begin + share.end - item, begin + kIndexBlock});
        if (!indices.within(begin, end)) return context.refuse();
        take(indices, begin, end, inputs[0] + outer * size_ * slice_bytes_, outputs[0] + outer * count_ * slice_bytes_);
        item += end - begin;
      }
    });
  }

 private:
  // Slices as small as a number are copied as one.
  template <typename Indices>
  void take(const Indices& indices, int64_t begin, int64_t end, const std::byte* x, std::byte* y) const {
    if (slice_bytes_ == sizeof(uint32_t)) return take_numbers<uint32_t>(indices, begin, end, x, y);
    if (slice_bytes_ == sizeof(uint64_t)) return take_numbers<uint64_t>(indices, begin, end, x, y);
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(y + i * slice_bytes_, x + indices[i] * slice_bytes_, static_cast<size_t>(slice_bytes_));
  }

  template <typename U, typename Indices>
  void take_numbers(const Indices& indices, int64_t begin, int64_t end, const std::byte* x, std::byte* y) const {
    const auto* from = reinterpret_cast<const U*>(x);
    auto* to = reinterpret_cast<U*>(y);
    each_index(begin, end, [&](int64_t i) { to[i] = from[indices[i]]; });
  }

  IndexReading indices_;
  int64_t outer_ = 1, size_ = 0, count_ = 0, slice_bytes_ = 0;
};

bool lie_plain(const KernelCall& call) {
  return call.inputs[0].layout == Layout::plain && call.outputs[0].layout == Layout::plain;
}

/// Whether channels lie side by side, and are enough for vectors.
bool may_pick(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  return dtype_bytes(x.dtype) == 4 && strides_of(x)[1] == 1 && strides_of(y)[1] == 1 && x.dims[1] >= kPanel;
}

/// Channels picked for each pixel, in any layouts.
class GatherChannels final : public Kernel {
 public:
  explicit GatherChannels(const KernelCall& call)
      : dtype_(call.inputs[0].dtype),
        indices_(index_reading(call, call.inputs[0].dims[1])),
        count_(call.outputs[0].dims[1]) {
    const TensorView &x = call.inputs[0], &y = call.outputs[0];
    const std::array<int64_t, 8> from = strides_of(x), to = strides_of(y);
    from_step_ = from[1], to_step_ = to[1];
    if (may_pick(call)) pick_ = pick_function();
    // Pixels alone: of what has one channel.
    std::vector<int64_t> pixels(y.shape().begin(), y.shape().end());
    pixels[1] = 1;
    pixels_ = Nest(pixels, {{to, 0}, {from, 0}});
  }

  bool serial() const override { return pixels_.elems() * count_ < 8192; }
  int64_t scratch_bytes(int threads) const override { return pick_ ? threads * plan_bytes() : 0; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    visit_width(dtype_, [&](auto zero) {
      using U = decltype(zero);
      visit_indices(indices_, inputs[1], [&](const auto indices) {
        for (int64_t begin = 0; begin < count_; begin += kIndexBlock)
          if (!indices.within(begin, std::min(count_, begin + kIndexBlock))) return context.refuse();
        const auto* x = reinterpret_cast<const U*>(inputs[0]);
        auto* y = reinterpret_cast<U*>(outputs[0]);
        if constexpr (sizeof(U) == sizeof(float)) {
          auto* plan = reinterpret_cast<Picked*>(context.scratch + context.thread * plan_bytes());
          if (pick_ && plan_picking([&](int64_t k) { return int64_t{indices[k]}; }, count_, indices.size, plan))
            return pick(context, plan, reinterpret_cast<const float*>(x), reinterpret_cast<float*>(y));
        }
        pixels_.for_tiles(context.thread, context.threads, kPixels, [&](const Nest::Tile& tile) {
          for (int64_t r = 0; r < tile.rows; ++r)
            for (int64_t c = 0; c < tile.cols; ++c)
              take(indices, x + tile.offsets[1] + r * pixels_.row_stride(1) + c * pixels_.col_stride(1),
                   y + tile.offsets[0] + r * pixels_.row_stride(0) + c * pixels_.col_stride(0));
        });
      });
    });
  }

 private:
  static constexpr int64_t kPixels = 32;

  int64_t plan_bytes() const { return (count_ + kPanel - 1) / kPanel * static_cast<int64_t>(sizeof(Picked)); }
  void pick(const RunContext& context, const Picked* plan, const float* x, float* y) const {
    pixels_.for_tiles(context.thread, context.threads, kPixels, [&](const Nest::Tile& tile) {
      for (int64_t r = 0; r < tile.rows; ++r)
        pick_(plan, count_, tile.cols, x + tile.offsets[1] + r * pixels_.row_stride(1), pixels_.col_stride(1),
              y + tile.offsets[0] + r * pixels_.row_stride(0), pixels_.col_stride(0));
    });
  }

  template <typename Indices, typename U>
  void take(const Indices& indices, const U* x, U* y) const {
    if (from_step_ == 1 && to_step_ == 1) return each_index(0, count_, [&](int64_t k) { y[k] = x[indices[k]]; });
    for (int64_t k = 0; k < count_; ++k) y[k * to_step_] = x[indices[k] * from_step_];
  }

  DType dtype_;
  IndexReading indices_;
  int64_t count_, from_step_ = 1, to_step_ = 1;
  PickFunction pick_ = nullptr;
  Nest pixels_;
};

/// Elements picked along an axis, all other axes alike in x and the indices.
class GatherElements final : public Kernel {
 public:
  GatherElements(const KernelCall& call, const AxisSplit& split)
      : split_(split), dtype_(call.inputs[0].dtype), indices_(index_reading(call, split.size)) {}

  bool serial() const override { return split_.outer * split_.count * split_.inner < 16384; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    visit_width(dtype_, [&](auto zero) {
      using U = decltype(zero);
      visit_indices(indices_, inputs[1], [&](const auto indices) {
        pick(context, indices, reinterpret_cast<const U*>(inputs[0]), reinterpret_cast<U*>(outputs[0]));
      });
    });
  }

 private:
  template <typename Indices, typename U>
  void pick(const RunContext& context, const Indices& indices, const U* x, U* y) const {
    const AxisSplit split = split_;  // what is written is none of it
    const int64_t most_rows = std::max<int64_t>(1, kIndexBlock / std::max<int64_t>(split.inner, 1));
    const Share share = share_of(split.outer * split.count, context.thread, context.threads);
    for (int64_t item = share.begin; item < share.end;) {
      const int64_t outer = item / split.count, first = item % split.count;
      const int64_t rows = std::min({split.count - first, share.end - item, most_rows});
      const int64_t begin = item * split.inner, end = begin + rows * split.inner;
      if (!indices.within(begin, end)) return context.refuse();
      const U* from = x + outer * split.size * split.inner;
      if (split.inner == 1) {
        each_index(begin, end, [&](int64_t k) { y[k] = from[indices[k]]; });
      } else {
        for (int64_t row = begin; row < end; row += split.inner)
          for (int64_t i = 0; i < split.inner; ++i) y[row + i] = from[indices[row + i] * split.inner + i];
      }
      item += rows;
    }
  }

  AxisSplit split_;
  DType dtype_;
  IndexReading indices_;
};

}  // namespace

Refusal serves_gather(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1];
  Terms terms("gather", call);
  terms.plain()
      .hold(is_index(indices.dtype), "takes indices of i64 and i32; got ", dtype_name(indices.dtype))
      .hold(x.rank > 0, "takes one axis or more");
  if (!terms.met()) return terms;
  const size_t axis = checked_axis("gather", call.params.integer("axis", 0), x.rank);
  return terms.hold(x.dims[axis] > 0 || indices.elems() == 0, "takes elements of what has some; got ", view_text(x));
}

Work gather_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  // In the time of so many multiply-adds of vectors a slice as small as a number is copied, or another begins; nothing
  // asks for one in memory before its turn, which takes as long as so many bytes that do follow one another.
  constexpr double kNumber = 1.5, kSlice = 20, kFound_bytes = 6 << 10;
  const TensorView& x = call.inputs[0];
  const size_t axis = checked_axis("gather", call.params.integer("axis", 0), x.rank);
  int64_t slice_bytes = dtype_bytes(x.dtype);
  for (size_t a = axis + 1; a < static_cast<size_t>(x.rank); ++a) slice_bytes *= x.dims[a];
  const double written = bytes_of(call.outputs), read = static_cast<double>(x.elem_bytes());
  const double slices = slice_bytes > 0 ? written / static_cast<double>(slice_bytes) : 0;
  const bool numbers = slice_bytes == sizeof(uint32_t) || slice_bytes == sizeof(uint64_t);
  Work work = Work().fetch(2 * written, written + read, machine);
  if (machine.level_of(written + read) == kMemory && !numbers) work.waited_bytes += slices * kFound_bytes;
  work.multiplies = slices * (numbers ? kNumber : kSlice);
  work.grains = std::max<int64_t>(1, static_cast<int64_t>(slices));
  return work;
}

std::unique_ptr<Kernel> make_gather(const KernelCall& call) {
  const size_t axis = checked_axis("gather", call.params.integer("axis", 0), call.inputs[0].rank);
  return std::make_unique<Gather>(call, axis);
}

Refusal serves_gather_channels(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1];
  return Terms("gather_channels", call)
      .hold(x.rank >= 3 && x.rank <= 5, "takes images; got ", view_text(x))
      .hold(is_index(indices.dtype) && indices.rank == 1 && indices.layout == Layout::plain,
            "takes one axis of indices of i64 or i32; got ", dtype_name(indices.dtype), view_text(indices))
      .hold(x.rank > 1 && checked_axis("gather", call.params.integer("axis", 0), x.rank) == 1 && x.dims[1] > 0,
            "takes channels, axis 1; got axis ", call.params.integer("axis", 0));
}

Work gather_channels_work(const KernelCall& call, const Machine& machine, int threads) {
  // In the time of so many multiply-adds of vectors one is picked out of two, and a channel alone is.
  constexpr double kPicked = 5, kChannel = 1.2;
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (lie_plain(call)) return gather_work(call, machine, threads);
  const int64_t pixels = y.elems() / std::max<int64_t>(1, y.dims[1]);
  const double written = bytes_of(call.outputs);
  Work work = Work().fetch(2 * written, written + static_cast<double>(x.elem_bytes()), machine);
  work.multiplies = static_cast<double>(pixels) *
                    (may_pick(call) ? vectors_of(y.dims[1]) * kPicked : static_cast<double>(y.dims[1]) * kChannel);
  work.grains = std::max<int64_t>(1, pixels);
  return work;
}

std::unique_ptr<Kernel> make_gather_channels(const KernelCall& call) {
  return lie_plain(call) ? make_gather(call) : std::make_unique<GatherChannels>(call);
}

Refusal serves_gather_elements(const KernelCall& call) {
  return serves_along_axis("gather_elements", call, call.inputs[0], call.inputs[1]);
}

std::unique_ptr<Kernel> make_gather_elements(const KernelCall& call) {
  return std::make_unique<GatherElements>(call, axis_split(call, call.inputs[0], call.inputs[1]));
}

}  // namespace hetnn::kernels
