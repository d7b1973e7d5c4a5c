// What layers keep in the device's read-only region, in the order in which the engines read it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "hetnn/backends/npu/network.h"
#include "hetnn/npu/spec.h"

namespace hetnn::backends::scheduling {

/// Keeps a constant for the device, and returns where it begins in the device's read-only region.
using KeepConstant = std::function<int64_t(const Tensor&)>;

/// Packs constants, or only says where they would lie: without `keep` everything begins at 0, enough to time a layer.
class Packer {
 public:
  Packer(const npu::Spec& spec, KeepConstant keep) : spec_(spec), keep_(std::move(keep)) {}

  /// A constant map, feature maps as N,H,W,C.
  int64_t map(const ir::Value& value);
  /// Filters in blocks of `block`, of each block `channels` after `channels`, as [kernel row][kernel column][channel]
  /// [filter].
  int64_t filters(const Layer& layer, int64_t block, int64_t channels);
  /// In the type of the sums: f32 for f16, for i8 integers of the sums' own scale, one for each filter.
  int64_t bias(const Layer& layer);
  /// Factors between scales, multiplier and shift each: of a product's accumulators, one for each filter or column; of
  /// a pair's operands and result, which for half_even_fp32 are their scales.
  int64_t product_factors(const Layer& layer);
  int64_t pair_factors(const Layer& layer);
  /// Of a product's result, its addend and their sum.
  int64_t addend_factors(const Layer& layer);
  int64_t table(const Layer& layer);
  /// Of rows: exponentials, or weights and biases.
  int64_t rows(const Layer& layer);

 private:
  int64_t keep(const Tensor& tensor) { return keep_ ? keep_(tensor) : 0; }
  // `of_steps`: of values of 16 bits at most.
  int64_t factors(const Layer& layer, std::span<const double> reals, bool of_steps = false);
  int64_t scales(std::span<const ir::Value* const> values);

  const npu::Spec& spec_;
  const KeepConstant keep_;
  std::map<const ir::Value*, int64_t> maps_;
};

}  // namespace hetnn::backends::scheduling
