// Data movement. All dtypes, plain or nhwc on either side.
//
// copy                x -> y: same shape, any layouts.
// reshape             x -> y: same elements in logical order, any shapes and layouts.
// transpose           params perm: axis i of y is axis perm[i] of x.
// concat              x_0 ... x_{n-1} -> y along param axis.
// slice               params axis (0), start, end (clamped), step (> 0).
// pad                 params padding [begin_0, ..., begin_{r-1}, end_0, ..., end_{r-1}] (negative crops), mode constant
// (default)
//                     reflect replicate circular, value (0).
// gather              x, indices (i64 or i32, any rank): y = x taken along param axis (torch index_select, embedding).
// Negative
//                     indices count from the end (param from_end 0: they are refused, as those beyond the axis are).
// gather_elements     x, indices of the output's shape: y[i,j,k] = x[i, indices[i,j,k], k] of param axis 1 (0).
// scatter_elements    x, indices, updates -> x with y[i, indices[i,j,k], k] replaced by updates[i,j,k], or joined with
//                     it: param reduce none add mul max min (the joins in f32 and i64); indices of the updates' shape,
//                     or of 1 along all axes but param axis (0).
// expand              x broadcast to y's shape.
// as_strided          params shape, strides, offset (0): y[i,j] = element offset + i strides[0] + j strides[1] of x.
// arange              no input -> y [n]: start + k * step. params start (0), step (1), whole numbers.
// flat_index          indices of one shape -> y i64: (i_0 s_1 + i_1) s_2 + ... of param sizes s, those below 0 counted
//                     from the end; it refuses those outside.
// upsample_nearest2d  x [N,C,H,W] -> [N,C,OH,OW]. params scales [h,w] ([] = by the sizes).
// upsample_bilinear2d params align_corners (0), scales ([]).
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// Of what copies elements from strides to strides: copy, reshape, transpose, concat and expand.
Refusal serves_copy(const KernelCall& call);
std::unique_ptr<Kernel> make_copy(const KernelCall& call);
std::unique_ptr<Kernel> make_reshape(const KernelCall& call);
std::unique_ptr<Kernel> make_transpose(const KernelCall& call);
std::unique_ptr<Kernel> make_concat(const KernelCall& call);
Refusal serves_slice(const KernelCall& call);
std::unique_ptr<Kernel> make_slice(const KernelCall& call);
Refusal serves_pad(const KernelCall& call);
std::unique_ptr<Kernel> make_pad(const KernelCall& call);
Work gather_work(const KernelCall& call, const Machine& machine, int threads);
Work gather_channels_work(const KernelCall& call, const Machine& machine, int threads);
Refusal serves_gather(const KernelCall& call);
std::unique_ptr<Kernel> make_gather(const KernelCall& call);
Refusal serves_gather_channels(const KernelCall& call);
std::unique_ptr<Kernel> make_gather_channels(const KernelCall& call);
Refusal serves_gather_elements(const KernelCall& call);
std::unique_ptr<Kernel> make_gather_elements(const KernelCall& call);
Refusal serves_scatter_elements(const KernelCall& call);
std::unique_ptr<Kernel> make_scatter_elements(const KernelCall& call);
std::unique_ptr<Kernel> make_expand(const KernelCall& call);
Refusal serves_as_strided(const KernelCall& call);
std::unique_ptr<Kernel> make_as_strided(const KernelCall& call);
Refusal serves_arange(const KernelCall& call);
std::unique_ptr<Kernel> make_arange(const KernelCall& call);
Refusal serves_flat_index(const KernelCall& call);
std::unique_ptr<Kernel> make_flat_index(const KernelCall& call);
Refusal serves_upsample_nearest2d(const KernelCall& call);
std::unique_ptr<Kernel> make_upsample_nearest2d(const KernelCall& call);
Work upsample_bilinear2d_work(const KernelCall& call, const Machine& machine, int threads);
Refusal serves_upsample_bilinear2d(const KernelCall& call);
std::unique_ptr<Kernel> make_upsample_bilinear2d(const KernelCall& call);

std::span<const Variant> move_variants();

}  // namespace hetnn::kernels
