// nary: sums, weighted sums, products and extremes of many inputs in one pass over memory.
//
// The output is cut into tiles that stay in the first-level cache. Per tile, `fan_in` inputs at a time are combined
// with the result so far, which never leaves that cache: every input is read once from memory and the output is written
// once, however many inputs there are.
#include "hetnn/kernels/elementwise/nary.h"

#include <algorithm>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/elementwise.h"
#include "hetnn/kernels/elementwise/nary_ops.h"
#include "hetnn/kernels/elementwise/steps.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

// A layer of this many bytes, inputs and output together, finds little of them in a cache, and leaves little of its
// output there: the output bypasses the caches.
constexpr int64_t kStream_bytes = 64 << 20;
// Long tiles keep the result so far in the second-level cache instead of the first. In return every input is read in
// long stretches, so that what memory is asked for ahead of a stretch's end is seldom for nothing. But there should be
// tiles for many threads.
constexpr int64_t kTilesWanted = 16;

enum class TermKind { add, subtract, weigh };

struct Term {
  size_t input;
  TermKind kind;
  float coefficient;
};

/// Consecutive terms of one kind that are combined in one pass over a tile, with the result so far as the first stream
/// (but for the first pass).
struct Pass {
  NaryFunction function;
  std::vector<int> inputs;  // kSoFar for the result so far
  std::vector<float> coefficients;
};
constexpr int kSoFar = -1;

class Nary final : public Kernel {
 public:
  Nary(const KernelCall& call, size_t count)
      : deterministic_(call.params.integer("deterministic", 0) != 0), written_(call.outputs[0].dtype) {
    ElementwiseBuilder builder(call, "nary");
    for (size_t i = 0; i < count; ++i) builder.add_operand(static_cast<int>(i));
    builder.add_steps();
    nest_ = builder.nest();
    steps_ = builder.steps();
    build_passes(call, count);
    tile_elems_ = nary_tile_elems(nest_.elems());
    streams_ = nest_.col_stride(0) == 1 && nest_.elems() * 4 * static_cast<int64_t>(count + 1) >= kStream_bytes;
  }

  bool serial() const override { return nest_.elems() * static_cast<int64_t>(nest_.operand_count()) < 16384; }

  // Where one pass reads all inputs: several write what is so far into the output between them.
  bool writes_over(size_t input) const override {
    return passes_.size() == 1 && written_ == DType::f32 && input + 1 < nest_.operand_count() &&
           nest_.col_stride(0) == 1 &&
           std::ranges::find(passes_[0].inputs, static_cast<int>(input)) != passes_[0].inputs.end() &&
           nest_.lie_alike(0, input + 1);
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* y = reinterpret_cast<float*>(outputs[0]);
    nest_.for_tiles(context.thread, context.threads, tile_elems_, [&](const Nest::Tile& tile) {
      alignas(64) float partial[kLongTileElems];
      const bool dense_out = nest_.col_stride(0) == 1 && written_ == DType::f32;
      const TileRows out{y + tile.offsets[0], nest_.row_stride(0)};
      // An output that bypasses the caches is only ever written; one with gaps between its columns is scattered.
      const TileRows result = streams_ || !dense_out ? TileRows{partial, tile.cols} : out;
      const bool direct = dense_out && steps_.empty();
      for (int64_t r = 0; r < tile.rows; ++r) {
        float* so_far = result.at + r * result.ld;
        run_row(tile, r, inputs, so_far, direct ? out.at + r * out.ld : so_far);
      }
      if (direct) return;
      steps_.apply(nest_, tile, inputs, {result.at, result.ld}, result);
      if (!dense_out) {
        write_tile(nest_, tile, result, written_, outputs[0]);
      } else if (streams_) {
        for (int64_t r = 0; r < tile.rows; ++r) {
          const float* row = result.at + r * result.ld;
          copy_({&row, nullptr, out.at + r * out.ld, tile.cols, can_stream(out.at + r * out.ld)});
        }
      }
    });
  }

 private:
  bool can_stream(const float* to) const { return streams_ && reinterpret_cast<uintptr_t>(to) % 64 == 0; }

  void build_passes(const KernelCall& call, size_t count) {
    const std::string op = call.params.text("op", "add");
    std::vector<double> coefficients = call.params.reals("coefficients", {});
    const NaryTable& table = nary_table();
    const int64_t given = call.params.integer("fan_in", 0);
    const auto fan_in = static_cast<size_t>(given == 0 ? kDefaultFanIn : given);
    std::vector<Term> terms;
    for (size_t i = 0; i < count; ++i) {
      const double c = coefficients.empty() ? 1.0 : coefficients[i];
      const TermKind kind = c == 1.0 ? TermKind::add : c == -1.0 ? TermKind::subtract : TermKind::weigh;
      // An operand times zero is not read, unless NaN and infinities must act as in a chain of single operations.
      if (c == 0.0 && !deterministic_) continue;
      terms.push_back({i, kind, static_cast<float>(c)});
    }
    if (!deterministic_)
      std::stable_sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.kind < b.kind; });
    const NaryFunction* extreme = op == "mul"       ? table.multiply
                                  : op == "maximum" ? table.max
                                  : op == "minimum" ? table.min
                                                    : nullptr;
    const auto dense = [&](size_t input) { return nest_.col_stride(input + 1) == 1; };
    for (size_t i = 0; i < terms.size();) {
      const bool first = passes_.empty();
      const bool weighs = terms[i].kind == TermKind::weigh || (terms[i].kind == TermKind::subtract && first);
      const NaryFunction* functions = extreme                          ? extreme
                                      : weighs && deterministic_       ? table.weigh_rounded
                                      : weighs                         ? table.weigh
                                      : terms[i].kind == TermKind::add ? table.add
                                                                       : table.subtract;
      Pass pass{nullptr, {}, {}};
      if (!first) {
        pass.inputs.push_back(kSoFar);
        pass.coefficients.push_back(1.0f);
      }
      // Inputs that must be gathered come alone. One at least joins, however short the passes are.
      const TermKind kind = terms[i].kind;
      do {
        pass.inputs.push_back(static_cast<int>(terms[i].input));
        pass.coefficients.push_back(terms[i].coefficient);
        ++i;
      } while (i < terms.size() && pass.inputs.size() < fan_in && functions[pass.inputs.size() + 1] != nullptr &&
               terms[i].kind == kind && dense(terms[i].input) && dense(terms[i - 1].input));
      pass.function = functions[pass.inputs.size()];
      passes_.push_back(std::move(pass));
    }
  }

  // One row of a tile: every pass but the last works in `so_far`, the last writes `out`.
  void run_row(const Nest::Tile& tile, int64_t r, const std::byte* const* inputs, float* so_far, float* out) const {
    alignas(64) float gathered[kLongTileElems];
    if (passes_.empty()) std::fill_n(out, tile.cols, 0.0f);
    for (size_t p = 0; p < passes_.size(); ++p) {
      const Pass& pass = passes_[p];
      const float* pointers[kMaxFanIn];
      for (size_t k = 0; k < pass.inputs.size(); ++k) {
        if (pass.inputs[k] == kSoFar) {
          pointers[k] = so_far;
          continue;
        }
        const auto operand = static_cast<size_t>(pass.inputs[k]) + 1;
        const float* from = reinterpret_cast<const float*>(inputs[pass.inputs[k]]) + tile.offsets[operand] +
                            r * nest_.row_stride(operand);
        const int64_t stride = nest_.col_stride(operand);
        if (stride != 1) {
          for (int64_t c = 0; c < tile.cols; ++c) gathered[c] = from[c * stride];
          from = gathered;
        }
        pointers[k] = from;
      }
      const bool last = p + 1 == passes_.size();
      float* to = last ? out : so_far;
      pass.function({pointers, pass.coefficients.data(), to, tile.cols, last && out != so_far && can_stream(to)});
    }
  }

  bool deterministic_;
  DType written_;
  Nest nest_;
  ElementwiseSteps steps_;
  std::vector<Pass> passes_;
  NaryFunction copy_ = nary_table().add[1];
  int64_t tile_elems_ = kTileElems;
  bool streams_ = false;
};

}  // namespace

int64_t nary_tile_elems(int64_t elems) {
  return std::clamp(elems / kTilesWanted / kTileElems * kTileElems, kTileElems, kLongTileElems);
}

int nary_inputs(const KernelCall& call) {
  size_t count = call.inputs.size();
  for (const Step& step : call.steps)
    if (operand_count(step) > 0) count = std::min(count, static_cast<size_t>(step.input));
  return static_cast<int>(count);
}

Refusal serves_nary(const KernelCall& call) {
  const int count = nary_inputs(call);
  const std::string op = call.params.text("op", "add");
  const DType dtype = call.inputs.empty() ? DType::f32 : call.inputs[0].dtype;
  const int64_t fan_in = call.params.integer("fan_in", 0);
  const size_t coefficients = call.params.reals("coefficients", {}).size();
  Terms terms("nary", call);
  terms.hold(count >= 1 && count <= kMaxNaryInputs, "takes 1 to ", kMaxNaryInputs, " inputs; got ", count)
      .hold(is_fan_in(fan_in), "takes a fan_in of 0 or in [2, ", kMaxFanIn, "]; got ", fan_in)
      .reads(dtype, static_cast<size_t>(std::max(count, 0)))
      .writes_behind_steps(dtype);
  if (!terms.met()) return terms;
  if (dtype != DType::f32) return terms.hold(serves_narrow_nary(call));
  const bool is_known = op == "add" || op == "mul" || op == "maximum" || op == "minimum";
  return terms.hold(is_known, "adds, multiplies and takes the largest or the least; got ", op)
      .hold(coefficients == 0 || (op == "add" && coefficients == static_cast<size_t>(count)),
            "takes coefficients of a sum, one per input; got ", coefficients, " for ", count, " inputs of ", op)
      .steps_on_tiles();
}

std::unique_ptr<Kernel> make_nary(const KernelCall& call) {
  const int count = nary_inputs(call);
  if (call.inputs[0].dtype != DType::f32) return make_narrow_nary(call, count);
  return std::make_unique<Nary>(call, static_cast<size_t>(count));
}

}  // namespace hetnn::kernels
