// The list of all kernels.
#include <algorithm>
#include <iterator>

#include "hetnn/kernels/attention/attention.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/elementwise/elementwise.h"
#include "hetnn/kernels/elementwise/nary.h"
#include "hetnn/kernels/gemm/gemm.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/norm/norm.h"
#include "hetnn/kernels/pool/pool.h"
#include "hetnn/kernels/quant/quant.h"
#include "hetnn/kernels/reduce/reduce.h"

namespace hetnn::kernels {
namespace {

constexpr KernelFamily kFamilies[] = {
    {"linear", make_linear, is_linear_weight, pack_linear},
    {"matmul", make_matmul},
    {"conv2d", make_conv2d, is_conv_weight, pack_conv2d, choose_conv2d},
    {"gated_conv2d", make_gated_conv2d, is_conv_weight, pack_gated_conv2d},
    {"conv1d", make_conv2d, is_conv_weight, pack_conv2d},
    {"conv_transpose2d", make_conv_transpose2d, is_conv_weight, pack_conv_transpose2d},
    {"max_pool2d", make_max_pool2d},
    {"avg_pool2d", make_avg_pool2d},
    {"adaptive_avg_pool2d", make_adaptive_avg_pool2d},
    {"adaptive_max_pool2d", make_adaptive_max_pool2d},
    {"unary", make_unary},
    {"binary", make_binary},
    {"where", make_where},
    {"cast", make_cast},
    {"quantize", make_quantize},
    {"dequantize", make_dequantize},
    {"lookup", make_lookup},
    {"nary", make_nary, nullptr, nullptr, nullptr, tune_nary},
    {"layer_norm", make_layer_norm},
    {"rms_norm", make_rms_norm},
    {"group_norm", make_group_norm},
    {"instance_norm", make_instance_norm},
    {"softmax", make_softmax},
    {"log_softmax", make_log_softmax},
    {"scale_shift", make_scale_shift},
    {"reduce", make_reduce},
    {"attention", make_attention},
    {"copy", make_copy},
    {"reshape", make_reshape},
    {"transpose", make_transpose},
    {"concat", make_concat},
    {"slice", make_slice},
    {"pad", make_pad},
    {"gather", make_gather},
    {"expand", make_expand},
    {"arange", make_arange},
    {"upsample_nearest2d", make_upsample_nearest2d},
    {"upsample_bilinear2d", make_upsample_bilinear2d},
    {"pixel_shuffle", make_pixel_shuffle},
    {"pixel_unshuffle", make_pixel_unshuffle},
};

}  // namespace

const KernelFamily* find_kernel(std::string_view name) {
  const auto* at = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                [name](const KernelFamily& family) { return family.name == name; });
  return at == std::end(kFamilies) ? nullptr : at;
}

std::span<const KernelFamily> all_kernels() { return kFamilies; }

}  // namespace hetnn::kernels
