// Elementwise operations one after the other on a tile that stays in the first-level cache: what unary, binary and nary
// kernels share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/kernels/block_ops.h"
#include "hetnn/kernels/elementwise/mixed_step.h"
#include "hetnn/kernels/elementwise/nary.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/nest.h"

namespace hetnn::kernels {

/// A tile of this many elements and its operands stay in the first-level cache.
inline constexpr int64_t kTileElems = 2048;

/// Rows of a tile, ld elements apart.
struct ConstTileRows {
  const float* at;
  int64_t ld;
};
struct TileRows {
  float* at;
  int64_t ld;
};

/// Slopes and epilogue operands of one axis belong to the channels, which are not the last axis of an nhwc output (nor,
/// for prelu, of any output): such a view with its axis where the channels are, any other as it is.
TensorView channel_view(const TensorView& view, const TensorView& output, bool prelu);

/// Operations of one launch, made ready to run tile after tile.
class ElementwiseSteps {
 public:
  bool empty() const { return steps_.empty(); }
  /// Whether one of them is (mixed_step.h).
  bool mixed() const { return mixed_; }

  /// Runs the steps on a tile: the first reads `in` and writes `out`, all others work in `out`. `out` may be `in`.
  void apply(const Nest& nest, const Nest::Tile& tile, const std::byte* const* inputs, ConstTileRows in,
             TileRows out) const;
  /// The same from and to truth values as well, for steps of which some are mixed.
  void apply_mixed(const Nest& nest, const Nest::Tile& tile, const std::byte* const* inputs, const TileIn& in,
                   const TileOut& out) const;

  /// The same on a tile of the nest that has its result in `output` already, whose elements need not be neighbours.
  void apply_in_place(const Nest& nest, const Nest::Tile& tile, const std::byte* const* inputs, float* output) const;

  /// Where a block's first element has its operand, in elements from the input's start, and how far the next row and
  /// the next column lie from there.
  struct Place {
    int64_t offset;
    int64_t ld;
    int64_t step;
  };
  /// The same on any rows and columns of the result: place_of(k) is the place of the builder's operand k.
  template <typename F>
  void apply(int64_t rows, int64_t cols, const std::byte* const* inputs, ConstTileRows in, TileRows out,
             F place_of) const {
    if (mixed_)
      return apply_mixed(rows, cols, inputs, {in.at, nullptr, in.ld}, {out.at, nullptr, out.ld}, erased(place_of));
    Block block{.in = in.at, .ld_in = in.ld, .out = out.at, .ld_out = out.ld, .rows = rows, .cols = cols};
    SumStep::Operand operands[kMaxNaryInputs];
    for (const Resolved& step : steps_) {
      const size_t count = step.operands();
      for (size_t k = 0; k < count; ++k) {
        const size_t operand = static_cast<size_t>(step.operand) + k;
        const Place place = place_of(operand);
        const int64_t bytes = step.operand_bytes(k);
        operands[k] = {inputs[inputs_[operand - 1]] + place.offset * bytes, place.ld, place.step};
      }
      run(step, operands, block);
      block.in = out.at;
      block.ld_in = out.ld;
    }
  }

 private:
  friend class ElementwiseBuilder;
  struct Resolved {
    BlockFunction map;  // null: a sum or a mixed step
    int operand;        // the first's position among the nest's operands, which are consecutive, or -1
    float c0 = 0, c1 = 0;
    std::optional<SumStep> sum = std::nullopt;
    std::optional<MixedStep> mixed = std::nullopt;

    size_t operands() const { return sum ? sum->operands() : mixed ? mixed->operands() : operand >= 0 ? 1 : 0; }
    int64_t operand_bytes(size_t k) const {
      return sum ? sum->operand_bytes() : mixed ? mixed->operand_bytes(k) : int64_t{sizeof(float)};
    }
  };
  /// Where operand k is, whatever says so.
  struct PlaceOf {
    Place (*call)(const void* self, size_t operand);
    const void* self;
  };
  template <typename F>
  static PlaceOf erased(const F& f) {
    return {[](const void* self, size_t operand) { return (*static_cast<const F*>(self))(operand); }, &f};
  }
  void apply_mixed(int64_t rows, int64_t cols, const std::byte* const* inputs, const TileIn& in, const TileOut& out,
                   PlaceOf place_of) const;
  static void run(const Resolved& step, const SumStep::Operand* operands, Block block);
  static void apply_binary(const Resolved& step, const SumStep::Operand& operand, Block block);

  std::vector<Resolved> steps_;
  bool mixed_ = false;       // whether one of them is
  std::vector<int> inputs_;  // of the call, by operand - 1
};

/// Collects the operands and steps of a call of f32 values. Operand 0 of the nest is the output.
class ElementwiseBuilder {
 public:
  /// `what` names the call in errors.
  ElementwiseBuilder(const KernelCall& call, std::string_view what);
  /// Operand 1 is where input 0 is read for each element of the output.
  ElementwiseBuilder(const KernelCall& call, std::string_view what, const NestOperand& read);

  /// Input `input` of the call, broadcast to the output: its number among the nest's operands.
  int add_operand(int input);
  /// As add_operand, for one that belongs to the channels when it has one axis (not the last axis of an nhwc output,
  /// nor, for the slopes of prelu, of any output).
  int add_channel_operand(int input, bool prelu);
  /// Appends an operation; its operands, consecutive inputs of the call, belong to the channels as those of steps do,
  /// or are read as they `lie`.
  void add_step(const Step& step, bool lie = false);
  /// Appends the steps of the call, with their operands.
  void add_steps();

  Nest nest() const { return Nest(call_.outputs[0].shape(), operands_); }
  /// What that nest is made of, for one over other axes.
  const std::vector<NestOperand>& operands() const { return operands_; }
  const ElementwiseSteps& steps() const { return steps_; }

 private:
  int add_view(int input, const TensorView& view);
  const TensorView& view_of(int input) const { return call_.inputs[static_cast<size_t>(input)]; }

  const KernelCall& call_;
  std::string what_;
  std::vector<NestOperand> operands_;
  ElementwiseSteps steps_;
};

/// Moves a tile to an output whose columns are not next to each other.
void scatter(const Nest& nest, const Nest::Tile& tile, TileRows from, float* output);

/// Runs steps of which some are mixed on a tile, straight into an output of f32 or bool whose columns are neighbours,
/// where none of their operands lies there.
void run_mixed(const Nest& nest, const Nest::Tile& tile, const ElementwiseSteps& steps, const std::byte* const* inputs,
               const TileIn& in, DType dtype, std::byte* output, bool over_operand = false);

/// Moves a tile to an output of f32, bool, f16 or bf16, whose digits it has.
void write_tile(const Nest& nest, const Nest::Tile& tile, TileRows from, DType dtype, std::byte* output);

}  // namespace hetnn::kernels
