// Lets kernels written for nhwc serve plain operands: copies through scratch around them.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// Makes the kernel with `create` after replacing every unpacked operand of the output's rank by an nhwc view. Operands
/// whose bytes already are nhwc (one channel, one pixel) are only relabelled; the others are copied at run time through
/// scratch.
std::unique_ptr<Kernel> make_with_nhwc(const KernelCall& call, KernelFactory create);

/// Whether a kernel that is asked by `serves` serves the call then.
Refusal serves_with_nhwc(const KernelCall& call, ServesFunction serves);

/// Copies this thread's share of a tensor of the same shape from one layout to the other (elements of 4, 2
/// or 1 bytes: float, uint16_t, int8_t).
/// images: plain[n][c][pixel] <-> pixels: nhwc[n][pixel * pitch + c].
template <typename T>
void copy_plain_to_nhwc(const T* plain, T* nhwc, int64_t batch, int64_t channels, int64_t pixels, int64_t pitch,
                        int thread, int threads);
template <typename T>
void copy_nhwc_to_plain(const T* nhwc, T* plain, int64_t batch, int64_t channels, int64_t pixels, int64_t pitch,
                        int thread, int threads);

}  // namespace hetnn::kernels
