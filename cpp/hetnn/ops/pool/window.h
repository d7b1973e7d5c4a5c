// What pooling operators share: a window over height and width.
#pragma once

#include <vector>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

/// Height and width of the window and how it moves; padding is top, left, bottom, right.
struct Window {
  std::vector<int64_t> kernel, stride, dilation, pad;
};
Window window_of(const ir::Node& node);

/// x [N,C,H,W] -> y [N,C,OH,OW], after checking the window against x (constraints c1 to c4 of the operator).
std::vector<ir::Type> infer_pool(const ir::Node& node);

/// One flop for every element of every window.
ir::Work pool_work(const ir::Node& node);
std::vector<ir::Metric> pool_metrics(const ir::Node& node);

/// The attributes that every pooling operator has, `ceil_mode` last, with the operator's own before it.
std::vector<ir::AttrDef> pool_attrs(std::vector<ir::AttrDef> own);

/// The kernel of the operator's name with the window and the operator's own attributes.
KernelChoice pool_kernel(const std::string& kernel, std::vector<std::string> own);

}  // namespace hetnn::ops
