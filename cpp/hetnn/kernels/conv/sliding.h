// Convolutions of few products a channel: windows slide over the image's rows, vectors run over the channels.
#pragma once

#include <memory>

#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

/// Whether the groups are so narrow that a panel of the product of a direct convolution would be half empty.
bool has_narrow_groups(const WindowGeometry& g);

/// The weight's panels: a group's input channels are k.
PanelShape sliding_shape(const WindowGeometry& g);

/// How threads share rows and panels of channels.
ThreadGrid sliding_grid(const WindowGeometry& g, int threads);

/// Of groups whose tiles of a row share what neighbouring windows read: how many of its columns a window is from the
/// next, one or two. Else 0.
int64_t grouped_row_step(const WindowGeometry& g);

/// Outputs of other groups' rows that are computed some together; those left over are computed one by one.
int64_t grouped_pixels_together(const WindowGeometry& g);

std::unique_ptr<Kernel> make_sliding_conv(const KernelCall& call, const WindowGeometry& g);

}  // namespace hetnn::kernels
