// Products of i8 rows with packed i8 panels, requantized to i8: the engine of quantized linear layers and convolutions.
// Where the result is f32, the sums are its reals: f32(sum) * f32(a_scale * w_scale[col]) + bias[col].
//
// out[row][col] = saturate(round(f32(sum over taps and k of (a - a_zero) w + bias[col]) * factor[col]) + zero), rounded
// to nearest even, factor = f32(a_scale * w_scale[col] / scale), within the bounds of a closing relu or clamp. The sums
// are integers, so that results are the same on every machine.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "hetnn/base/requantize.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/gemm/integer_micro.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/quant/rows.h"

namespace hetnn::kernels {

/// Names of the operands of a product: rows, and what they are multiplied by.
struct ProductOperands {
  std::string_view rows = "x", columns = "weight";
};

/// Whether the result of a call is the reals of its sums.
bool has_real_sums(const KernelCall& call);

/// What a call's params say of the integers of its operands, of a bias and of its result `y`, 1 and 0 of reals.
struct LayerScales {
  double x_scale = 1, y_scale = 1;
  int32_t x_zero = 0, weight_zero = 0, y_zero = 0;
  std::vector<double> weight;  // one, or one a filter
  Rounding rounding = Rounding::half_even_fp32;
  int64_t divisor = 1;  // of all factors

  /// Of a call whose scales are not refused.
  explicit LayerScales(const KernelCall& call, const ProductOperands& operands = {});
  double weight_scale(int64_t filter) const { return weight[weight.size() == 1 ? 0 : static_cast<size_t>(filter)]; }
  /// Of a sum to the result's scale.
  Requant factor(int64_t filter) const {
    return requant_of(factor_between(weight_scale(filter) * x_scale, y_scale, rounding), rounding, divisor);
  }
  /// A bias of a scale of its own as an integer at the scale of the sums.
  int32_t bias_of(int64_t filter, int32_t bias, double scale) const;
};

/// Why integer layers do not take the scales of a call: they take one for each value, or one a filter, and one zero
/// point.
Refusal refuse_layer_scales(const KernelCall& call, const ProductOperands& operands = {});

/// Why integer layers do not take the steps of a call: they take relu, clamp and one sum that has a quick way, where
/// the result is real what rows take.
Refusal refuse_integer_steps(const KernelCall& call);

/// A sum of a layer's result with another value of its shape, which replaces the result where it lies.
class IntegerSum {
 public:
  IntegerSum() = default;
  IntegerSum(const KernelCall& call, const Step& step);

  explicit operator bool() const { return sum_.run != nullptr; }
  void bound(int32_t low, int32_t high);
  double scale() const { return sum_.y; }
  int32_t zero() const { return sum_.y_zero; }
  const int8_t* operand(const std::byte* const* inputs) const {
    return *this ? reinterpret_cast<const int8_t*>(inputs[input_]) : nullptr;
  }
  /// Of some rows and columns of a result of rows `ld_out` apart.
  void add(const int8_t* operand, int8_t* out, int64_t ld_out, Share rows, Share cols) const;

 private:
  ByteSum sum_{};
  int input_ = 0;
  int64_t ld_ = 0;
};

/// What stands for 0 in the rows and in the result, the bounds of the result, and what is added to it then.
struct IntegerEnds {
  int32_t x_zero, zero, low, high;
  IntegerSum sum;
  /// Of steps that are not refused.
  IntegerEnds(const KernelCall& call, const LayerScales& scales);
};

/// Integers of the result from sums with all that belongs to them, by roundings other than half_even_fp32.
struct FixedPoint {
  Rounding rounding;
  int32_t zero, low, high;
  int8_t operator()(int32_t sum, const Requant& factor) const {
    return static_cast<int8_t>(std::clamp<int64_t>(int64_t{requantize(sum, factor, rounding)} + zero, low, high));
  }
};

/// A bias as integers at the scale of the sums: filter's into to[place(filter)].
template <typename Place>
void place_bias(const KernelCall& call, const std::byte* bias, int64_t filters, const Place& place, int32_t* to) {
  const LayerScales scales(call);
  const std::vector<double> given = call.params.reals("bias.scales");
  for (int64_t filter = 0; filter < filters; ++filter)
    to[place(filter)] = scales.bias_of(filter, reinterpret_cast<const int32_t*>(bias)[filter],
                                       given[given.size() == 1 ? 0 : static_cast<size_t>(filter)]);
}

/// Pointers and strides of one run.
struct IntegerRun {
  const RowSource* source = nullptr;
  const std::byte* packed = nullptr;
  const int32_t* bias = nullptr;  // packed, or null
  int8_t* out = nullptr;
  float* reals = nullptr;  // in place of `out`
  int64_t ld_out = 0;
  const int8_t* operand = nullptr;           // of the sum behind it, or null
  const std::byte* const* inputs = nullptr;  // of the call
};

/// Sums of products of the rows as they are, of some rows and columns of the result.
struct RawSums {
  const int32_t* sums;
  int64_t ld_sums;  // up to whole panels
  Share rows, cols;
};

class IntegerProduct {
 public:
  using Element = int8_t;

  /// Whether a call's scales, its steps and the number of its products are such.
  static Refusal serves(const PanelShape& shape, const KernelCall& call, const ProductOperands& operands = {});

  IntegerProduct(const PanelShape& shape, const KernelCall& call, const ProductOperands& operands = {})
      : IntegerProduct(shape, call, LayerScales(call, operands)) {}

  const PanelShape& shape() const { return shape_; }
  int64_t scratch_bytes_per_thread() const {
    return by_tiles_ ? tile_scratch_bytes() : split_.scratch_bytes_per_thread();
  }
  /// Whether it reads none but evenly spaced rows, up to whole steps of a tap where the shape says so.
  static bool reads_even_rows(const PanelShape& shape);
  IntegerRun run_on(const std::byte* const* inputs, const std::byte* packed, const std::byte* bias, std::byte* out,
                    int64_t ld_out) const;
  /// This thread's share. `scratch` is this thread's own.
  void run(const IntegerRun& run, int thread, int threads, std::byte* scratch) const;
  /// Writes the results of sums that another way made.
  void finish(const IntegerRun& run, const RawSums& of) const;
  /// Adds the value that a sum behind the layer adds, where there is one, to such rows of all columns.
  void add_to(const IntegerRun& run, Share rows) const {
    if (run.operand != nullptr) ends_.sum.add(run.operand, run.out, run.ld_out, rows, {0, shape_.cols});
  }
  /// Whether a sum with another value follows.
  bool has_sum() const { return static_cast<bool>(ends_.sum); }
  /// What stands for the real 0 in the rows.
  int8_t row_zero() const { return static_cast<int8_t>(ends_.x_zero); }

  /// The weight and the bias are packed.
  static bool is_weight(const KernelCall& call, int input) {
    return input == 1 || (input == 2 && call.params.integer("bias", 0) != 0);
  }
  /// Bytes of input 1, the panels and, of every column, the sum of its weights and its factor, in two words; and of
  /// input 2, the bias at the scale of the sums.
  static int64_t packed_bytes(const PanelShape& shape, int input);
  static std::vector<std::byte> pack(const PanelShape& shape, const KernelCall& call, int input,
                                     std::span<const std::byte> weight, const PackStrides& strides);
  /// The same of some panels, into `packed`, whose bytes may be anything.
  static void pack_share(const PanelShape& shape, Share panels, const LayerScales& scales, const int8_t* weight,
                         const PackStrides& strides, std::byte* packed);

 private:
  struct Place {
    int64_t row, col, column;
    const int32_t* shifts;  // of that column
  };
  // What stands behind the panels.
  struct Columns {
    const int32_t* sums;
    const float* factors;
    const int32_t* shifts;
  };
  IntegerProduct(const PanelShape& shape, const KernelCall& call, const LayerScales& scales);
  Columns columns_of_weight(const std::byte* packed) const;
  // What all tiles of a run have alike.
  IntegerFinish finish_of(const IntegerRun& run) const;
  // What the zero point of the weights takes from every column of a row: of the sum of its elements, or of the row,
  // whose taps stand so far behind it.
  int32_t term_of(int32_t sum) const {
    return -weight_zero_ * (sum - ends_.x_zero * static_cast<int32_t>(shape_.taps * shape_.k));
  }
  int32_t row_term(const std::byte* row, const int64_t* taps) const;
  void sum_rows(const TilePlace& place, int32_t* sums) const;
  int64_t tile_scratch_bytes() const;
  void run_tiles(const IntegerRun& run, int thread, int threads, std::byte* scratch) const;
  // The result of a block at that place, whose first column is `column` of the panels.
  void finish_block(const IntegerFinish& finish, const IntegerRun& run, Place place) const;
  void finish_fixed(const IntegerFinish& finish, const int32_t* shifts) const;

  PanelShape shape_;
  const IntegerMicroTable* micro_;
  PanelSplit split_;
  IntegerEnds ends_;
  int32_t weight_zero_;
  Rounding rounding_;
  bool below_one_ = false;     // every factor is
  bool in_registers_ = false;  // sums become integers there
  bool by_tiles_;
  bool reals_;             // are its result,
  EpiloguePlan epilogue_;  // which these steps follow
};

}  // namespace hetnn::kernels
