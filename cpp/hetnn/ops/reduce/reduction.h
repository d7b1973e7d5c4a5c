// What reductions share: any axes to one, each operator with its own way of joining two values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {

/// What tells one reduction from another.
struct Reduction {
  std::string_view name;
  std::string_view doc;  // of the result, without the axes
  std::vector<TorchName> torch;
  std::vector<std::string_view> onnx;
  std::vector<Tensor> (*evaluate)(const Evaluation&);
  std::string kernel;  // its name among the kernel's operations
  double tolerance;
  std::vector<std::string_view> samples;
};

/// The type of the input over fewer axes.
std::vector<Type> infer_reduction(const Call& call);

/// A result that is what was gathered.
inline double as_gathered(double so_far, int64_t /*count*/) { return so_far; }

/// The operator: attributes `axes` and `keepdim`, one flop an element.
OpDef reduction(const Reduction& of, std::vector<Type> (*infer)(const Call&) = infer_reduction);

}  // namespace hetnn::ops
