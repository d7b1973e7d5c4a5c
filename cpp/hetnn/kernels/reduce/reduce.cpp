// Reductions over any axes of any layout, those of f32 with steps behind.
#include "hetnn/kernels/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/block_ops.h"
#include "hetnn/kernels/elementwise/steps.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/norm/row_ops.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

enum class ReduceOp { sum, mean, max, min, prod, any, all, argmax, argmin };

std::optional<ReduceOp> reduce_op_from_name(std::string_view name) {
  static constexpr std::string_view kNames[] = {"sum", "mean", "reduce_max", "reduce_min", "prod",
                                                "any", "all",  "argmax",     "argmin"};
  const auto* at = std::find(std::begin(kNames), std::end(kNames), name);
  if (at == std::end(kNames)) return std::nullopt;
  return static_cast<ReduceOp>(at - std::begin(kNames));
}

bool is_arg(ReduceOp op) { return op == ReduceOp::argmax || op == ReduceOp::argmin; }

/// Outputs are walked by one nest (operands: output, first input element, those of the steps), the elements of each by
/// another (operand: input offset; in logical order for the arg reductions, else in storage order).
struct ReduceSpace {
  Nest outputs;
  Nest inputs;
  int64_t count = 1;
  ElementwiseSteps steps = {};  // of f32
};

ReduceSpace reduce_space(const KernelCall& call, bool logical_order) {
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  std::vector<int64_t> axes = call.params.integers("axes", {});
  if (x.rank == 0) axes.clear();  // one number, whichever axis it is said to lie on
  std::vector<bool> reduced(static_cast<size_t>(x.rank), axes.empty());
  for (const int64_t axis : axes) reduced[checked_axis("reduce", axis, x.rank)] = true;
  const bool keeps = y.rank == x.rank;
  const std::array<int64_t, 8> in = strides_of(x);
  std::vector<int64_t> in_shape;
  NestOperand from, inner, order;
  size_t out_axis = 0;
  for (size_t axis = 0; axis < static_cast<size_t>(x.rank); ++axis) {
    if (reduced[axis]) {
      inner.strides[in_shape.size()] = in[axis];
      in_shape.push_back(x.dims[axis]);
      if (keeps) ++out_axis;
    } else {
      from.strides[out_axis] = in[axis];
      ++out_axis;
    }
  }
  ReduceSpace space;
  for (const int64_t dim : in_shape) space.count *= dim;
  std::vector<NestOperand> operands = {broadcast_operand(y, y.shape(), "reduce: the output"), from};
  if (!call.steps.empty()) {
    ElementwiseBuilder builder(call, "reduce", from);
    builder.add_steps();
    space.steps = builder.steps();
    operands = builder.operands();
  }
  space.outputs = Nest(y.shape(), std::move(operands));
  if (logical_order) {
    int64_t step = 1;
    for (size_t axis = in_shape.size(); axis-- > 0;) {
      order.strides[axis] = step;
      step *= in_shape[axis];
    }
    space.inputs = Nest(in_shape, {order, inner});
  } else {
    space.inputs = Nest(in_shape, {inner, inner});
  }
  return space;
}

/// Calls f(element offset) for all inputs of one output.
template <typename F>
void for_inputs(const Nest& inputs, F f) {
  if (inputs.elems() == 0) return;
  inputs.for_tiles(0, 1, std::numeric_limits<int64_t>::max(), [&](const Nest::Tile& tile) {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t c = 0; c < tile.cols; ++c) f(tile.offsets[1] + r * inputs.row_stride(1) + c * inputs.col_stride(1));
  });
}

/// Calls f(output offset, input offset) for this thread's outputs, and applies the steps to what it wrote.
template <typename F>
void for_outputs(const ReduceSpace& space, const RunContext& context, const std::byte* const* inputs,
                 std::byte* const* written, F f) {
  const Nest& outputs = space.outputs;
  outputs.for_tiles(context.thread, context.threads, 256, [&](const Nest::Tile& tile) {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t c = 0; c < tile.cols; ++c)
        f(tile.offsets[0] + r * outputs.row_stride(0) + c * outputs.col_stride(0),
          tile.offsets[1] + r * outputs.row_stride(1) + c * outputs.col_stride(1));
    space.steps.apply_in_place(outputs, tile, inputs, reinterpret_cast<float*>(written[0]));
  });
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

/// Any type, one output at a time. Floats add in double, integers in int64.
template <typename T>
class PlainReduce final : public Kernel {
 public:
  PlainReduce(ReduceOp op, ReduceSpace space, DType out) : op_(op), space_(std::move(space)), out_(out) {}

  bool serial() const override { return space_.outputs.elems() * space_.count < 4096; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* x = reinterpret_cast<const T*>(inputs[0]);
    const int64_t bytes = dtype_bytes(out_);
    // What has no elements may have no memory either.
    for_outputs(space_, context, inputs, outputs,
                [&](int64_t to, int64_t from) { reduce(space_.count > 0 ? x + from : x, outputs[0] + to * bytes); });
  }

 private:
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

  template <typename Out>
  static void write(std::byte* y, Out value) {
    *reinterpret_cast<Out*>(y) = value;
  }
  // Sums may be of a wider type than the elements.
  void write_sum(std::byte* y, Sum sum) const {
    if (out_ == DTypeOf<T>::value) return write(y, static_cast<T>(sum));
    write(y, static_cast<int64_t>(sum));
  }

  void reduce(const T* x, std::byte* y) const {
    switch (op_) {
      case ReduceOp::sum:
      case ReduceOp::mean: {
        Sum sum{};
        for_inputs(space_.inputs, [&](int64_t at) { sum += static_cast<Sum>(x[at]); });
        if (op_ == ReduceOp::sum) return write_sum(y, sum);
        return write(y, static_cast<T>(static_cast<double>(sum) / static_cast<double>(space_.count)));
      }
      case ReduceOp::prod: {
        Sum product = 1;
        for_inputs(space_.inputs, [&](int64_t at) { product *= static_cast<Sum>(x[at]); });
        return write_sum(y, product);
      }
      case ReduceOp::any:
      case ReduceOp::all: {
        bool any = false, all = true;
        for_inputs(space_.inputs, [&](int64_t at) {
          any = any || x[at] != T(0);
          all = all && x[at] != T(0);
        });
        return write(y, op_ == ReduceOp::any ? any : all);
      }
      case ReduceOp::max:
      case ReduceOp::min: {
        T best = op_ == ReduceOp::max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
        if constexpr (std::is_floating_point_v<T>)
          best = op_ == ReduceOp::max ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
        for_inputs(space_.inputs, [&](int64_t at) {
          if (better(x[at], best)) best = x[at];
        });
        return write(y, best);
      }
      case ReduceOp::argmax:
      case ReduceOp::argmin: {
        int64_t index = 0, best = 0;
        bool first = true;
        T value{};
        for_inputs(space_.inputs, [&](int64_t at) {
          if (first || better(x[at], value)) {
            value = x[at];
            best = index;
          }
          first = false;
          ++index;
        });
        return write(y, best);
      }
    }
  }

  // NaN beats every number and keeps its place.
  bool better(T candidate, T than) const {
    if (is_nan(than)) return false;
    if (is_nan(candidate)) return true;
    return op_ == ReduceOp::max || op_ == ReduceOp::argmax ? candidate > than : candidate < than;
  }

  ReduceOp op_;
  ReduceSpace space_;
  DType out_;
};

/// f32 where the reduced elements of an output form dense rows, or where outputs lie side by side.
class FastReduce final : public Kernel {
 public:
  static constexpr int64_t kColumns = 256;  // of outputs side by side that are computed together

  FastReduce(ReduceOp op, ReduceSpace space)
      : op_(op), space_(std::move(space)), rows_dense_(dense_rows(space_)), row_ops_(&row_ops()) {
    combine_ = block_function(op == ReduceOp::max   ? ops::Function::maximum
                              : op == ReduceOp::min ? ops::Function::minimum
                                                    : ops::Function::add);
    if (has_few_columns()) {
      const int64_t blocks = (space_.count + kBlock - 1) / kBlock;
      chunk_ = (blocks + kMostChunks - 1) / kMostChunks * kBlock;
      chunks_ = (space_.count + chunk_ - 1) / chunk_;
    }
  }

  static bool serves(ReduceOp op, const ReduceSpace& space) {
    if (op != ReduceOp::sum && op != ReduceOp::mean && op != ReduceOp::max && op != ReduceOp::min) return false;
    if (space.count == 0) return false;
    return dense_rows(space) || (space.outputs.col_stride(0) == 1 && space.outputs.col_stride(1) == 1);
  }

  static bool dense_rows(const ReduceSpace& space) {
    return space.inputs.col_stride(1) == 1 && space.inputs.cols() >= 16;
  }

  bool serial() const override { return space_.outputs.elems() * space_.count < 8192; }

  int64_t scratch_bytes(int /*threads*/) const override {
    return chunks_ * space_.outputs.cols() * static_cast<int64_t>(sizeof(double));
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    auto* y = reinterpret_cast<float*>(outputs[0]);
    if (chunks_ > 0) return sum_columns(context, x, y, inputs);
    if (rows_dense_) {
      for_outputs(space_, context, inputs, outputs, [&](int64_t to, int64_t from) { y[to] = reduce_rows(x + from); });
      return;
    }
    const Nest& outer = space_.outputs;
    outer.for_tiles(context.thread, context.threads, kColumns, [&](const Nest::Tile& tile) {
      for (int64_t r = 0; r < tile.rows; ++r)
        reduce_columns(x + tile.offsets[1] + r * outer.row_stride(1), y + tile.offsets[0] + r * outer.row_stride(0),
                       tile.cols);
      space_.steps.apply_in_place(outer, tile, inputs, y);
    });
  }

 private:
  static constexpr int64_t kBlock = 64, kMostChunks = 32;  // rows

  // Long sums of a few columns side by side, as of the channels of images: their rows are shared by the threads.
  bool has_few_columns() const {
    const Nest &outer = space_.outputs, &inner = space_.inputs;
    return !rows_dense_ && (op_ == ReduceOp::sum || op_ == ReduceOp::mean) && outer.outer_rows() == 1 &&
           inner.outer_rows() == 1 && outer.cols() <= kColumns && space_.count >= 4 * kBlock;
  }

  // Chunks are cut alike whatever the threads are.
  void sum_columns(const RunContext& context, const float* x, float* y, const std::byte* const* inputs) const {
    auto* sums = reinterpret_cast<double*>(context.scratch);
    const int64_t cols = space_.outputs.cols(), ld = space_.inputs.col_stride(1);
    const Share share = share_of(chunks_, context.thread, context.threads);
    for (int64_t chunk = share.begin; chunk < share.end; ++chunk) {
      const int64_t rows = std::min(chunk_, space_.count - chunk * chunk_);
      std::fill_n(sums + chunk * cols, cols, 0.0);
      row_ops_->column_sums(x + chunk * chunk_ * ld, ld, rows, cols, nullptr, false, sums + chunk * cols);
    }
    if (context.threads > 1) context.barrier.arrive_and_wait();
    space_.outputs.for_tiles(context.thread, context.threads, kColumns, [&](const Nest::Tile& tile) {
      for (int64_t c = 0; c < tile.cols; ++c) {
        double sum = 0;
        for (int64_t chunk = 0; chunk < chunks_; ++chunk) sum += sums[chunk * cols + tile.offsets[1] + c];
        if (op_ == ReduceOp::mean) sum /= static_cast<double>(space_.count);
        y[tile.offsets[0] + c] = static_cast<float>(sum);
      }
      space_.steps.apply_in_place(space_.outputs, tile, inputs, y);
    });
  }

  float reduce_rows(const float* x) const {
    double sum = 0;
    float best =
        op_ == ReduceOp::max ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
    const int64_t cols = space_.inputs.cols();
    NestOffsets offsets(space_.inputs.operand_count());
    for (int64_t row = 0; row < space_.inputs.outer_rows(); ++row) {
      space_.inputs.locate(row, offsets.data());
      const float* at = x + offsets[1];
      if (op_ == ReduceOp::max || op_ == ReduceOp::min) {
        const float value = op_ == ReduceOp::max ? row_ops_->max(at, cols) : row_ops_->min(at, cols);
        const bool better = op_ == ReduceOp::max ? value > best : value < best;
        if (!std::isnan(best) && (std::isnan(value) || better)) best = value;
      } else {
        sum += row_ops_->sum(at, cols);
      }
    }
    if (op_ == ReduceOp::max || op_ == ReduceOp::min) return best;
    return static_cast<float>(op_ == ReduceOp::mean ? sum / static_cast<double>(space_.count) : sum);
  }

  // Sums of 64 rows at a time are added to the total, so that long columns stay accurate.
  void reduce_columns(const float* x, float* y, int64_t cols) const {
    const bool extreme = op_ == ReduceOp::max || op_ == ReduceOp::min;
    if (!extreme && space_.inputs.outer_rows() == 1) {
      double sums[kColumns] = {};
      row_ops_->column_sums(x, space_.inputs.col_stride(1), space_.count, cols, nullptr, false, sums);
      const double by = op_ == ReduceOp::mean ? 1.0 / static_cast<double>(space_.count) : 1.0;
      for (int64_t c = 0; c < cols; ++c) y[c] = static_cast<float>(sums[c] * by);
      return;
    }
    alignas(64) float part[kColumns];
    constexpr int64_t kPart = 64;
    int64_t done = 0;
    const auto flush = [&] {
      if (done <= kPart) {
        std::copy_n(part, cols, y);
      } else {
        combine_({y, cols, y, cols, 1, cols, part, cols, 1});
      }
    };
    for_inputs(space_.inputs, [&](int64_t at) {
      if (done % kPart == 0) {
        if (done > 0) flush();
        std::copy_n(x + at, cols, part);
      } else {
        combine_({part, cols, part, cols, 1, cols, x + at, cols, 1});
      }
      ++done;
    });
    flush();
    if (extreme || op_ == ReduceOp::sum) return;
    const float factor = 1.0f / static_cast<float>(space_.count);
    for (int64_t c = 0; c < cols; ++c) y[c] *= factor;
  }

  ReduceOp op_;
  ReduceSpace space_;
  bool rows_dense_;
  const RowOps* row_ops_;
  BlockFunction combine_;
  int64_t chunk_ = 0, chunks_ = 0;  // rows of a chunk; 0 chunks: columns are not shared
};

}  // namespace

Refusal serves_reduce(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const std::string name = call.params.text("op");
  const std::optional<ReduceOp> op = reduce_op_from_name(name);
  Terms terms("reduce", call);
  terms.hold(op.has_value(), "knows no operation named ", name)
      .hold(is_float(x.dtype) || is_integer(x.dtype) || x.dtype == DType::boolean, "computes no ", dtype_name(x.dtype))
      .hold(!is_narrow_float(x.dtype), "computes no ", dtype_name(x.dtype));
  if (!terms.met()) return terms;
  const bool arg = is_arg(*op), logical = *op == ReduceOp::any || *op == ReduceOp::all;
  // Sums of integers and bools may widen to i64, as torch's do.
  const bool widens = y.dtype == DType::i64 && !is_float(x.dtype) && (*op == ReduceOp::sum || *op == ReduceOp::prod);
  const DType wanted = arg ? DType::i64 : logical ? DType::boolean : x.dtype;
  const auto of_none = call.params.attrs().find("of_none");
  const bool defined = of_none != call.params.attrs().end() && std::get<bool>(of_none->second);
  const bool chooses = arg || *op == ReduceOp::max || *op == ReduceOp::min;
  return terms.hold(y.dtype == wanted || widens, name, " gives ", dtype_name(wanted), "; got ", dtype_name(y.dtype))
      .hold(call.steps.empty() || y.dtype == DType::f32, "takes steps behind f32; got ", dtype_name(y.dtype))
      .hold(*op != ReduceOp::mean || is_float(x.dtype), "computes no means of ", dtype_name(x.dtype))
      .hold(x.elems() > 0 || y.elems() == 0 || !chooses || defined, name, " chooses among one element or more; got ",
            view_text(x))
      .steps_on_tiles();
}

std::unique_ptr<Kernel> make_reduce(const KernelCall& call) {
  const std::optional<ReduceOp> op = reduce_op_from_name(call.params.text("op"));
  const DType in = call.inputs[0].dtype, out = call.outputs[0].dtype;
  ReduceSpace space = reduce_space(call, is_arg(*op));
  const bool chooses = is_arg(*op) || *op == ReduceOp::max || *op == ReduceOp::min;
  if (in == DType::f32 && !(space.count == 0 && chooses) && FastReduce::serves(*op, space))
    return std::make_unique<FastReduce>(*op, std::move(space));
  return visit_dtype(in, [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    if constexpr (kIsNarrowFloat<T>) {
      throw InternalError(text("reduce is made for ", dtype_name(in)));
    } else {
      return std::make_unique<PlainReduce<T>>(*op, std::move(space), out);
    }
  });
}

namespace {

// What is reduced lies in dense rows, or the outputs side by side, and is read by vectors; else one by one.
Work reduce_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  // In the time of so many multiply-adds of vectors one joins a row's sum, of four, or the largest so far, for which
  // the next waits, and a row begins and ends; one of outputs side by side joins; and an element alone does.
  constexpr double kSum = 2.6, kLargest = 6.4, kRow = 64, kRowOfLargest = 100, kSumOfColumns = 3.8, kColumns = 5.5;
  constexpr double kElement = 1.5, kOutput = 92;
  const std::optional<ReduceOp> op = reduce_op_from_name(call.params.text("op"));
  const auto read = static_cast<double>(call.inputs[0].elem_bytes());
  Work work = Work().fetch(read + bytes_of(call.outputs.first(1)), read, machine);
  const ReduceSpace space = reduce_space(call, is_arg(*op));
  const auto outputs = static_cast<double>(space.outputs.elems()), count = static_cast<double>(space.count);
  const bool adds = *op == ReduceOp::sum || *op == ReduceOp::mean;
  work.grains = std::max<int64_t>(1, space.outputs.elems());
  if (call.inputs[0].dtype != DType::f32 || !FastReduce::serves(*op, space)) {
    work.multiplies = outputs * (count * kElement + kOutput);
  } else if (FastReduce::dense_rows(space)) {
    work.multiplies = outputs * static_cast<double>(space.inputs.outer_rows()) *
                      (vectors_of(space.inputs.cols()) * (adds ? kSum : kLargest) + (adds ? kRow : kRowOfLargest));
  } else {
    work.multiplies = vectors_of(space.outputs.elems()) * (count * (adds ? kSumOfColumns : kColumns));
    work.grains = std::max<int64_t>(1, space.outputs.elems() / FastReduce::kColumns);
  }
  return work;
}

}  // namespace

std::span<const Variant> reduce_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "reduce",
       .op = "sum",
       .speed = "reduce",
       .serves = serves_reduce,
       .create = make_reduce,
       .takes_steps = true,
       .work = reduce_work},
      {.name = "reduce",
       .op = "mean",
       .speed = "reduce",
       .serves = serves_reduce,
       .create = make_reduce,
       .takes_steps = true,
       .work = reduce_work},
      {.name = "reduce",
       .op = "reduce_max",
       .speed = "reduce",
       .serves = serves_reduce,
       .create = make_reduce,
       .takes_steps = true,
       .work = reduce_work},
      {.name = "reduce",
       .op = "reduce_min",
       .speed = "reduce",
       .serves = serves_reduce,
       .create = make_reduce,
       .takes_steps = true,
       .work = reduce_work},
      {.name = "reduce",
       .op = "prod",
       .speed = "reduce",
       .serves = serves_reduce,
       .create = make_reduce,
       .takes_steps = true,
       .work = reduce_work},
      {.name = "reduce",
       .op = "any",
       .speed = "reduce",
       .serves = serves_reduce,
       .create = make_reduce,
       .work = reduce_work},
      {.name = "reduce",
       .op = "all",
       .speed = "reduce",
       .serves = serves_reduce,
       .create = make_reduce,
       .work = reduce_work},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
