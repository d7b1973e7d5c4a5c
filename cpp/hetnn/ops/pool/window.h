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
Window window_of(const Call& call);

/// x [N,C,H,W] -> y [N,C,OH,OW], after checking the window against x (constraints c1 to c4 of the operator).
std::vector<Type> infer_pool(const Call& call);

/// One flop for every element of every window.
Work pool_work(const Call& call);
std::vector<Metric> pool_metrics(const Call& call);

/// The attributes that every pooling operator has, `ceil_mode` last, with the operator's own before it.
std::vector<AttrDef> pool_attrs(std::vector<AttrDef> own);

/// The kernel of the operator's name with the window and the operator's own attributes.
KernelChoice pool_kernel(const std::string& kernel, std::vector<std::string> own);

}  // namespace hetnn::ops
