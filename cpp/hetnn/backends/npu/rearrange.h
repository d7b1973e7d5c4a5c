// How layers that move values only find their elements.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/backends/npu/network.h"

namespace hetnn::backends::scheduling {

/// Whether a concat or slice works on the channels, which lie side by side in every pixel.
bool along_channels(const Layer& layer);

/// The first element that a slice takes of its axis.
int64_t slice_begin(const Layer& layer, const Bindings& bindings);

/// Runs of bytes that a concat or slice copies: `runs` of `run_bytes`, so many bytes apart.
struct Copy {
  const ir::Value* from;
  int64_t runs, run_bytes;
  int64_t from_offset, from_pitch, to_offset, to_pitch;  // from where the values begin
};
/// All copies of such a layer between values whose pixels lie so many bytes apart.
std::vector<Copy> copies_of(const Layer& layer, const Network& network);

/// A nest of copies: bytes between neighbours of each axis.
struct Loops {
  std::vector<int64_t> extents, from, to;
};
/// Steps of a rearrangement of dense values, one after another; none where every element keeps its place. `rows` of the
/// first axis, or all where 0. A reshape between two feature maps goes by way of the row-major order.
std::vector<Loops> moves_of(const Layer& layer, const Bindings& bindings, int64_t rows);

/// How many rows of the first axis stay rows of the first axis, outermost in every layout; 1 where the value cannot be
/// cut.
int64_t rows_that_stay(const Layer& layer, const Bindings& bindings);

}  // namespace hetnn::backends::scheduling
