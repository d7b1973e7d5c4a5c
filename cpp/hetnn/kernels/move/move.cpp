// Copies whose whole meaning is a change of strides: copy, transpose, slice, expand, concat, reshape.
#include "hetnn/kernels/move/move.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "hetnn/base/error.h"
#include "hetnn/base/strides.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/move/transpose.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kTile = 4096;
constexpr int64_t kSerialBelow = 8192;

/// Every second element, as of pairs, with strides that the compiler knows.
template <typename T>
void copy_row(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t count) {
  if (from_step == 2 && to_step == 1) {
    for (int64_t k = 0; k < count; ++k) to[k] = from[2 * k];
  } else if (from_step == 1 && to_step == 2) {
    for (int64_t k = 0; k < count; ++k) to[2 * k] = from[k];
  } else {
    for (int64_t k = 0; k < count; ++k) to[k * to_step] = from[k * from_step];
  }
}

/// Elements of operand 1 moved to where operand 0 says, over one nest.
template <typename T>
void copy_nest(const Nest& nest, int thread, int threads, const std::byte* from_bytes, std::byte* to_bytes) {
  const auto* from = reinterpret_cast<const T*>(from_bytes);
  auto* to = reinterpret_cast<T*>(to_bytes);
  const int64_t to_row = nest.row_stride(0), to_col = nest.col_stride(0);
  const int64_t from_row = nest.row_stride(1), from_col = nest.col_stride(1);
  const bool turns = !(to_col == 1 && from_col == 1) && (to_row < to_col || from_row < from_col);
  const auto copy_tile = [&](const Nest::Tile& tile) {
    T* out = to + tile.offsets[0];
    const T* in = from + tile.offsets[1];
    if (to_col == 1 && from_col == 1) {
      for (int64_t r = 0; r < tile.rows; ++r)
        std::memcpy(out + r * to_row, in + r * from_row, static_cast<size_t>(tile.cols) * sizeof(T));
      return;
    }
    if (!turns) {
      for (int64_t r = 0; r < tile.rows; ++r)
        copy_row(in + r * from_row, from_col, out + r * to_row, to_col, tile.cols);
      return;
    }
    if constexpr (sizeof(T) == sizeof(float)) {
      if (to_col == 1 && from_row == 1)
        return transpose(reinterpret_cast<const float*>(in), from_col, reinterpret_cast<float*>(out), to_row, tile.cols,
                         tile.rows);
    }
    // Squares, so that a transposition uses whole cache lines on both sides.
    constexpr int64_t kSquare = 16;
    for (int64_t c0 = 0; c0 < tile.cols; c0 += kSquare) {
      const int64_t c1 = std::min(tile.cols, c0 + kSquare);
      for (int64_t r = 0; r < tile.rows; ++r)
        for (int64_t c = c0; c < c1; ++c) out[r * to_row + c * to_col] = in[r * from_row + c * from_col];
    }
  };
  // As high as wide where lines of the cache run down the columns, so that each is read once.
  constexpr int64_t kSide = 64;
  static_assert(kSide * kSide == kTile);
  nest.for_tiles(thread, threads, kTile, copy_tile,
                 turns ? kTile / std::clamp<int64_t>(nest.rows(), 1, kSide) : std::numeric_limits<int64_t>::max());
}

/// Two elements of four bytes that lie side by side on both sides, as the parts of a complex number.
using Pair = std::array<uint32_t, 2>;

/// A kernel that tells what it moves.
class Moving : public Kernel {
 public:
  virtual Work work(const Machine& machine) const = 0;

 protected:
  // In the time of so many multiply-adds of vectors one is turned, an element alone is moved, and a row begins.
  static constexpr double kTurned = 12, kElement = 1.5, kRow = 20;
};

// Of elements that are read and written once.
Work moved_once(double bytes, const Machine& machine) {
  Work work = Work().fetch(2 * bytes, 2 * bytes, machine);
  work.grains = std::max<int64_t>(1, static_cast<int64_t>(bytes) / 64);
  return work;
}

class StridedCopy final : public Moving {
 public:
  struct Copy {
    int input;
    Nest nest;
  };
  /// `pairs`: the nests count pairs of elements.
  StridedCopy(DType dtype, std::vector<Copy> copies, bool pairs = false)
      : unit_bytes_(dtype_bytes(dtype) * (pairs ? 2 : 1)), dtype_(dtype), copies_(std::move(copies)), pairs_(pairs) {
    for (const Copy& copy : copies_) elems_ += copy.nest.elems();
  }

  bool serial() const override { return elems_ < kSerialBelow; }

  Work work(const Machine& machine) const override {
    Work work = moved_once(static_cast<double>(elems_ * unit_bytes_), machine);
    for (const auto& [input, nest] : copies_) {
      if (nest.col_stride(0) == 1 && nest.col_stride(1) == 1) {
        work.multiplies += static_cast<double>(nest.outer_rows()) * kRow;
      } else if (unit_bytes_ == sizeof(float) && nest.col_stride(0) == 1 && nest.row_stride(1) == 1) {
        work.multiplies += vectors_of(nest.elems()) * kTurned;
      } else {
        work.multiplies += static_cast<double>(nest.elems()) * kElement;
      }
    }
    return work;
  }

  std::optional<int64_t> view() const override {
    return copies_.size() == 1 && keeps_strides(copies_[0]) ? std::optional(-offset_bytes(copies_[0])) : std::nullopt;
  }

  std::vector<Part> parts() const override {
    std::vector<Part> out;
    if (copies_.size() == 1) return out;
    for (const Copy& copy : copies_) {
      if (keeps_strides(copy)) out.push_back({copy.input, offset_bytes(copy)});
    }
    return out;
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    for (const Copy& each : copies_) {
      if (inputs[each.input] == outputs[0] + offset_bytes(each) && keeps_strides(each)) continue;
      const auto copy = [&](auto zero) {
        copy_nest<decltype(zero)>(each.nest, context.thread, context.threads, inputs[each.input], outputs[0]);
      };
      pairs_ ? copy(Pair()) : visit_width(dtype_, copy);
    }
  }

 private:
  static bool keeps_strides(const Copy& copy) { return copy.nest.elems() > 0 && copy.nest.same_strides(0, 1); }
  /// From where the output begins to where the input does, when their elements lie at the same places.
  int64_t offset_bytes(const Copy& copy) const { return (copy.nest.offset(0) - copy.nest.offset(1)) * unit_bytes_; }

  int64_t unit_bytes_;
  DType dtype_;
  int64_t elems_ = 0;
  std::vector<Copy> copies_;
  bool pairs_;
};

/// The axis whose two elements lie side by side on both sides, where all else is a whole number of such pairs away.
std::optional<size_t> axis_of_pairs(std::span<const int64_t> shape, const NestOperand& to, const NestOperand& from) {
  std::optional<size_t> out;
  bool whole = to.offset % 2 == 0 && from.offset % 2 == 0;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (!out && shape[k] == 2 && to.strides[k] == 1 && from.strides[k] == 1) {
      out = k;
    } else {
      whole = whole && to.strides[k] % 2 == 0 && from.strides[k] % 2 == 0;
    }
  }
  return whole ? out : std::nullopt;
}

std::unique_ptr<Moving> one_copy(const KernelCall& call, std::span<const int64_t> shape, NestOperand to,
                                 NestOperand from) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  const DType dtype = call.outputs[0].dtype;
  const std::optional<size_t> pairs = dtype_bytes(dtype) == 4 ? axis_of_pairs(shape, to, from) : std::nullopt;
  if (pairs) {
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(*pairs));
    for (NestOperand* operand : {&to, &from}) {
      std::copy(operand->strides.begin() + *pairs + 1, operand->strides.end(), operand->strides.begin() + *pairs);
      for (int64_t& stride : operand->strides) stride /= 2;
      operand->offset /= 2;
    }
  }
  std::vector<StridedCopy::Copy> copies;
  copies.push_back({0, Nest(dims, {to, from})});
  return std::make_unique<StridedCopy>(dtype, std::move(copies), pairs.has_value());
}

NestOperand whole(const TensorView& view) { return {strides_of(view), 0}; }

/// Two nhwc or plain tensors of one shape and of 4-byte elements, by the blocked transposition.
class LayoutCopy final : public Moving {
 public:
  LayoutCopy(const TensorView& x, const TensorView& y) : to_nhwc_(y.layout == Layout::nhwc) {
    const RowView rows = row_view(to_nhwc_ ? y : x);
    batch_ = x.dims[0];
    channels_ = rows.cols;
    pixels_ = rows.rows_per_batch;
    pitch_ = rows.pitch;
  }
  bool serial() const override { return batch_ * channels_ * pixels_ < kSerialBelow; }
  Work work(const Machine& machine) const override {
    const int64_t elems = batch_ * channels_ * pixels_;
    Work work = moved_once(static_cast<double>(elems) * sizeof(float), machine);
    work.multiplies = vectors_of(elems) * kTurned;
    return work;
  }
  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    auto* y = reinterpret_cast<float*>(outputs[0]);
    (to_nhwc_ ? copy_plain_to_nhwc<float> : copy_nhwc_to_plain<float>)(x, y, batch_, channels_, pixels_, pitch_,
                                                                       context.thread, context.threads);
  }

 private:
  bool to_nhwc_;
  int64_t batch_, channels_, pixels_, pitch_;
};

/// Elements in logical order between two layouts of different shapes, of which at least one is nhwc: through plain
/// scratch.
class TwoStepReshape final : public Moving {
 public:
  TwoStepReshape(std::unique_ptr<Moving> first, std::unique_ptr<Moving> second, int64_t middle_bytes)
      : first_(std::move(first)), second_(std::move(second)), middle_bytes_(middle_bytes) {}
  int64_t scratch_bytes(int /*threads*/) const override { return middle_bytes_; }
  Work work(const Machine& machine) const override {
    Work work = first_->work(machine);
    const Work second = second_->work(machine);
    work.multiplies += second.multiplies;
    for (size_t level = 0; level < work.bytes.size(); ++level) work.bytes[level] += second.bytes[level];
    work.waited_bytes += second.waited_bytes;
    work.barriers = 1;
    return work;
  }
  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    std::byte* middle = context.scratch;
    first_->run(context, inputs, &middle);
    context.barrier.arrive_and_wait();
    const std::byte* from = middle;
    second_->run(context, &from, outputs);
  }

 private:
  std::unique_ptr<Moving> first_, second_;
  int64_t middle_bytes_;
};

TensorView merged(const TensorView& view) {
  const int64_t count = view.elems();
  return TensorView::plain(view.dtype, std::span(&count, 1));
}

std::unique_ptr<Moving> copy_of(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  const bool turns = x.layout != y.layout && x.layout != Layout::strided && y.layout != Layout::strided;
  if (turns && dtype_bytes(x.dtype) == 4) return std::make_unique<LayoutCopy>(x, y);
  return one_copy(call, y.shape(), whole(y), whole(x));
}

std::unique_ptr<Moving> reshape_of(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  if (std::ranges::equal(x.shape(), y.shape())) return copy_of(call);
  if (x.layout == Layout::strided || y.layout == Layout::strided) {
    const std::array<int64_t, 8> apart = strides_of(x);
    const auto rank = static_cast<size_t>(x.rank);
    if (const auto seen = strides_in_shape(x.shape(), std::span<const int64_t>(apart).first(rank), y.shape())) {
      NestOperand from;
      std::ranges::copy(*seen, from.strides.begin());
      return one_copy(call, y.shape(), whole(y), from);
    }
  }
  const auto plain_order = [](const TensorView& view) {
    if (view.layout != Layout::nhwc) return view.layout == Layout::plain;
    const RowView rows = row_view(view);
    return (rows.cols == 1 || rows.rows_per_batch == 1) && rows.pitch == rows.cols;
  };
  if (plain_order(x) && plain_order(y)) {
    const TensorView flat = merged(x);
    return one_copy(call, flat.shape(), whole(flat), whole(flat));
  }
  const TensorView middle_x = TensorView::plain(x.dtype, x.shape());
  const TensorView middle_y = TensorView::plain(y.dtype, y.shape());
  if (plain_order(x)) return copy_of({std::span(&middle_y, 1), call.outputs, call.params});
  if (plain_order(y)) return copy_of({call.inputs, std::span(&middle_x, 1), call.params});
  return std::make_unique<TwoStepReshape>(copy_of({call.inputs, std::span(&middle_x, 1), call.params}),
                                          copy_of({std::span(&middle_y, 1), call.outputs, call.params}),
                                          x.elems() * dtype_bytes(x.dtype));
}

std::unique_ptr<Moving> transpose_of(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  const std::vector<int64_t> perm = call.params.integers("perm");
  for (size_t i = 0; i < perm.size(); ++i)
    HETNN_ASSERT(static_cast<int>(perm.size()) == x.rank && y.dims[i] == x.dims[static_cast<size_t>(perm[i])],
                 view_text(x), " to ", view_text(y));
  const std::array<int64_t, 8> strides = strides_of(x);
  NestOperand from;
  for (size_t i = 0; i < perm.size(); ++i) from.strides[i] = strides[static_cast<size_t>(perm[i])];
  return one_copy(call, y.shape(), whole(y), from);
}

std::unique_ptr<Moving> concat_of(const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  const auto axis = checked_axis("concat", call.params.integer("axis"), y.rank);
  std::vector<StridedCopy::Copy> copies;
  int64_t at = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorView& x = call.inputs[i];
    NestOperand to = whole(y);
    to.offset = at * to.strides[axis];
    copies.push_back({static_cast<int>(i), Nest(x.shape(), {to, whole(x)})});
    at += x.dims[axis];
  }
  return std::make_unique<StridedCopy>(y.dtype, std::move(copies));
}

std::unique_ptr<Moving> slice_of(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  const auto axis = checked_axis("slice", call.params.integer("axis", 0), x.rank);
  const int64_t step = call.params.integer("step", 1), size = x.dims[axis];
  const auto clamped = [&](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size); };
  const int64_t begin = clamped(call.params.integer("start", 0)), end = clamped(call.params.integer("end", size));
  NestOperand from = whole(x);
  HETNN_ASSERT(y.dims[axis] == (end > begin ? (end - begin + step - 1) / step : 0), view_text(x), " to ", view_text(y));
  from.offset += begin * from.strides[axis];
  from.strides[axis] *= step;
  return one_copy(call, y.shape(), whole(y), from);
}

std::unique_ptr<Moving> expand_of(const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  return one_copy(call, y.shape(), whole(y), broadcast_operand(call.inputs[0], y.shape(), "expand: x"));
}

std::unique_ptr<Moving> as_strided_of(const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  const std::vector<int64_t> strides = call.params.integers("strides");
  NestOperand from{.strides = {}, .offset = call.params.integer("offset", 0)};
  std::ranges::copy(strides, from.strides.begin());
  return one_copy(call, y.shape(), whole(y), from);
}

}  // namespace

// Inference has compared the shapes: any strides of one element size are copied.
Refusal serves_copy(const KernelCall& call) {
  const DType to = call.outputs[0].dtype;
  Terms terms("a copy", call);
  for (const TensorView& view : call.inputs)
    terms.hold(dtype_bytes(view.dtype) == dtype_bytes(to), "keeps the dtype; got ", dtype_name(view.dtype), " to ",
               dtype_name(to));
  return terms;
}

Refusal serves_slice(const KernelCall& call) {
  const int64_t step = call.params.integer("step", 1);
  return Terms("slice", call).hold(step >= 1, "takes steps of 1 or more; got ", step);
}

Refusal serves_as_strided(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const std::vector<int64_t> strides = call.params.integers("strides");
  int64_t last = call.params.integer("offset", 0);
  bool fits = static_cast<int>(strides.size()) == y.rank && last >= 0;
  for (size_t k = 0; fits && k < strides.size(); ++k) {
    last += (y.dims[k] - 1) * strides[k];
    fits = strides[k] >= 0;
  }
  return Terms("as_strided", call)
      .plain()
      .hold(fits && (y.elems() == 0 || last < x.elems()), "takes strides that stay within x; got ", view_text(x),
            " to ", view_text(y));
}

std::unique_ptr<Kernel> make_copy(const KernelCall& call) { return copy_of(call); }
std::unique_ptr<Kernel> make_reshape(const KernelCall& call) { return reshape_of(call); }
std::unique_ptr<Kernel> make_transpose(const KernelCall& call) { return transpose_of(call); }
std::unique_ptr<Kernel> make_concat(const KernelCall& call) { return concat_of(call); }
std::unique_ptr<Kernel> make_slice(const KernelCall& call) { return slice_of(call); }
std::unique_ptr<Kernel> make_expand(const KernelCall& call) { return expand_of(call); }
std::unique_ptr<Kernel> make_as_strided(const KernelCall& call) { return as_strided_of(call); }

namespace {

// As much is read as is written.
Work move_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  const double written = bytes_of(call.outputs);
  Work work = Work().fetch(2 * written, written + bytes_of(call.inputs), machine);
  work.grains = std::max<int64_t>(1, static_cast<int64_t>(written) / 64);
  return work;
}

template <std::unique_ptr<Moving> (*kOf)(const KernelCall&)>
Work work_of_copies(const KernelCall& call, const Machine& machine, int /*threads*/) {
  return kOf(call)->work(machine);
}

}  // namespace

std::span<const Variant> move_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "copy",
       .op = "identity",
       .speed = "move",
       .serves = serves_copy,
       .create = make_copy,
       .work = work_of_copies<copy_of>},
      {.name = "reshape",
       .op = "reshape",
       .speed = "move",
       .serves = serves_copy,
       .create = make_reshape,
       .layout = LayoutWish::written_plain,
       .work = work_of_copies<reshape_of>},
      {.name = "transpose",
       .op = "permute",
       .speed = "move",
       .serves = serves_copy,
       .create = make_transpose,
       .layout = LayoutWish::turned,
       .work = work_of_copies<transpose_of>},
      {.name = "concat",
       .op = "concat",
       .speed = "move",
       .serves = serves_copy,
       .create = make_concat,
       .work = work_of_copies<concat_of>},
      {.name = "slice",
       .op = "slice",
       .speed = "move",
       .serves = serves_slice,
       .create = make_slice,
       .work = work_of_copies<slice_of>},
      {.name = "pad", .op = "pad", .speed = "move", .serves = serves_pad, .create = make_pad, .work = move_work},
      {.name = "gather_channels",
       .op = "gather",
       .speed = "move",
       .serves = serves_gather_channels,
       .create = make_gather_channels,
       .work = gather_channels_work},
      {.name = "gather",
       .op = "gather",
       .speed = "move",
       .serves = serves_gather,
       .create = make_gather,
       .layout = LayoutWish::plain,
       .work = gather_work},
      {.name = "gather_elements",
       .op = "gather_elements",
       .speed = "move",
       .serves = serves_gather_elements,
       .create = make_gather_elements,
       .layout = LayoutWish::plain,
       .work = move_work},
      {.name = "scatter_elements",
       .op = "scatter_elements",
       .speed = "move",
       .serves = serves_scatter_elements,
       .create = make_scatter_elements,
       .layout = LayoutWish::plain,
       .work = move_work},
      {.name = "expand",
       .op = "expand",
       .speed = "move",
       .serves = serves_copy,
       .create = make_expand,
       .layout = LayoutWish::written_plain,
       .work = work_of_copies<expand_of>},
      // Whoever makes it has inferred its shape, so that it is an expansion, of no axis as a rule.
      {.name = "match_shape",
       .op = "match_shape",
       .speed = "move",
       .serves = serves_copy,
       .create = make_expand,
       .layout = LayoutWish::written_plain,
       .work = work_of_copies<expand_of>},
      {.name = "as_strided",
       .op = "as_strided",
       .speed = "move",
       .serves = serves_as_strided,
       .create = make_as_strided,
       .layout = LayoutWish::plain,
       .work = work_of_copies<as_strided_of>},
      {.name = "arange",
       .op = "arange",
       .speed = "move",
       .serves = serves_arange,
       .create = make_arange,
       .layout = LayoutWish::plain},
      {.name = "flat_index",
       .op = "flat_index",
       .speed = "move",
       .serves = serves_flat_index,
       .create = make_flat_index,
       .layout = LayoutWish::plain,
       .work = move_work},
      {.name = "upsample_nearest2d",
       .op = "upsample_nearest2d",
       .speed = "move",
       .serves = serves_upsample_nearest2d,
       .create = make_upsample_nearest2d,
       .takes_steps = true,
       .work = move_work},
      {.name = "upsample_bilinear2d",
       .op = "upsample_bilinear2d",
       .speed = "move",
       .serves = serves_upsample_bilinear2d,
       .create = make_upsample_bilinear2d,
       .takes_steps = true,
       .work = upsample_bilinear2d_work},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
