// Sums of many f16, bf16 or i8 values: the roundings of the meaning, in registers.
#include <algorithm>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/kernels/elementwise/nary.h"
#include "hetnn/kernels/elementwise/nary_narrow_ops.h"
#include "hetnn/kernels/elementwise/nary_ops.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

// Columns at a time: their sums so far stay in the first-level cache.
constexpr int64_t kChunk = 1024;

class NarrowNary final : public Kernel {
 public:
  NarrowNary(const KernelCall& call, int inputs) : dtype_(call.outputs[0].dtype) {
    const TensorView& y = call.outputs[0];
    const bool rounds = call.params.integer("deterministic", 0) != 0;
    std::vector<double> coefficients = call.params.reals("coefficients", {});
    coefficients.resize(static_cast<size_t>(inputs), coefficients.empty() ? 1.0 : 0.0);
    std::vector<NestOperand> operands = {broadcast_operand(y, y.shape(), "nary: the output")};
    bool weighs = false;
    for (int k = 0; k < inputs; ++k) {
      const TensorView& view = call.inputs[static_cast<size_t>(k)];
      const double c = coefficients[static_cast<size_t>(k)];
      if (c == 0 && !rounds) continue;
      weighs = weighs || c != 1;
      operands.push_back(broadcast_operand(view, y.shape(), text("nary: input ", k)));
      inputs_.push_back(k);
      coefficients_.push_back(static_cast<float>(c));
    }
    nest_ = Nest(y.shape(), std::move(operands));
    const int64_t given = call.params.integer("fan_in", 0);
    fan_in_ = static_cast<size_t>(given == 0 ? kDefaultFanIn : given);
    if (dtype_ != DType::i8) halves_ = halves_function(dtype_, weighs, rounds);
  }

  bool serial() const override { return nest_.elems() * static_cast<int64_t>(nest_.operand_count()) < 16384; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    dtype_ == DType::i8 ? run_as<uint8_t>(context, inputs, outputs) : run_as<uint16_t>(context, inputs, outputs);
  }

 private:
  template <typename T>
  void run_as(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const {
    auto* y = reinterpret_cast<T*>(outputs[0]);
    const int64_t out_step = nest_.col_stride(0);
    nest_.for_tiles(context.thread, context.threads, nary_tile_elems(nest_.elems()), [&](const Nest::Tile& tile) {
      T spread[kChunk];
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (int64_t c = 0; c < tile.cols; c += kChunk) {
          const int64_t n = std::min(kChunk, tile.cols - c);
          T* to = y + tile.offsets[0] + r * nest_.row_stride(0) + c * out_step;
          add(tile, r, c, n, inputs, out_step == 1 ? to : spread);
          for (int64_t i = 0; out_step != 1 && i < n; ++i) to[i * out_step] = spread[i];
        }
      }
    });
  }

  // Columns [c, c + n) of the tile's row r of operand k; what does not lie side by side is brought to `room`.
  template <typename T>
  const T* columns(const Nest::Tile& tile, int64_t r, int64_t c, int64_t n, const std::byte* const* inputs, size_t k,
                   T* room) const {
    const int64_t step = nest_.col_stride(k + 1);
    const T* from =
        reinterpret_cast<const T*>(inputs[inputs_[k]]) + tile.offsets[k + 1] + r * nest_.row_stride(k + 1) + c * step;
    if (step == 1) return from;
    for (int64_t i = 0; i < n; ++i) room[i] = from[i * step];
    return room;
  }

  void add(const Nest::Tile& tile, int64_t r, int64_t c, int64_t n, const std::byte* const* inputs,
           uint8_t* out) const {
    uint8_t room[kMaxFanIn][kChunk];
    if (inputs_.empty()) std::fill_n(out, n, uint8_t{0});
    for (size_t done = 0; done < inputs_.size();) {
      const size_t count = std::min(inputs_.size() - done, fan_in_ - (done > 0 ? 1 : 0));
      const uint8_t* pointers[kMaxFanIn];
      for (size_t k = 0; k < count; ++k) pointers[k] = columns(tile, r, c, n, inputs, done + k, room[k]);
      bytes_({pointers, static_cast<int>(count), done == 0, out, n});
      done += count;
    }
  }

  void add(const Nest::Tile& tile, int64_t r, int64_t c, int64_t n, const std::byte* const* inputs,
           uint16_t* out) const {
    uint16_t room[kMaxFanIn][kChunk];
    float so_far[kChunk + kSoFarRoom];
    if (inputs_.empty()) std::fill_n(out, n, uint16_t{0});
    for (size_t done = 0; done < inputs_.size();) {
      // The result so far is a stream of its own.
      const size_t count = std::min(inputs_.size() - done, fan_in_ - (done > 0 ? 1 : 0));
      const uint16_t* pointers[kMaxFanIn];
      for (size_t k = 0; k < count; ++k) pointers[k] = columns(tile, r, c, n, inputs, done + k, room[k]);
      const bool last = done + count == inputs_.size();
      halves_(
          {pointers, coefficients_.data() + done, static_cast<int>(count), done == 0, so_far, last ? out : nullptr, n});
      done += count;
    }
  }

  DType dtype_;
  std::vector<int> inputs_;  // of the call, those that are read
  std::vector<float> coefficients_;
  size_t fan_in_ = 0;
  Nest nest_;
  HalvesFunction halves_ = nullptr;
  BytesFunction bytes_ = bytes_function();
};

}  // namespace

Refusal serves_narrow_nary(const KernelCall& call) {
  const DType dtype = call.outputs[0].dtype;
  const std::string op = call.params.text("op", "add");
  const bool narrow = is_narrow_float(dtype) || (dtype == DType::i8 && !call.params.has("scale"));
  return Terms("nary", call)
      .hold(narrow && op == "add" && call.steps.empty(),
            "computes f32, and sums of f16, bf16 and i8 without scales or steps; got ", op, " of ", dtype_name(dtype));
}

std::unique_ptr<Kernel> make_narrow_nary(const KernelCall& call, int inputs) {
  return std::make_unique<NarrowNary>(call, inputs);
}

}  // namespace hetnn::kernels
