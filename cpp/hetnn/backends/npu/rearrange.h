// How layers that move values only find their elements.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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
/// Rows and columns for which each pixel of an enlarged image stands; 0 where the pixels are not all repeated as often.
using Repeats = std::array<int64_t, 2>;
/// None where the node does not enlarge an image.
std::optional<Repeats> repeats_of(const ir::Node& node, const Bindings& bindings);

/// A rearranged value is cut along one axis. Where one of the axis' elements lies in the operand or the result: `runs`
/// of `run_bytes`, so many bytes apart; the next element begins behind the first run.
struct Slab {
  int64_t runs = 1, run_bytes = 0, pitch = 0;
};
struct Slabs {
  int64_t count = 1;  // elements of the axis; 1 where the value is not cut
  size_t in_axis = 0, out_axis = 0;
  Slab in, out;  // of one element
};
Slabs slabs_of(const Layer& layer, const Bindings& bindings);

/// Steps of a rearrangement of dense values, one after another; none where every element keeps its place. Of so many
/// elements of the slabs' axis, or of all where `count` is 0; `in_whole`, `out_whole`: these lie in the whole value,
/// and not by themselves. A reshape between two feature maps goes by way of the row-major order.
std::vector<Loops> moves_of(const Layer& layer, const Bindings& bindings, int64_t count = 0, bool in_whole = false,
                            bool out_whole = false);

}  // namespace hetnn::backends::scheduling
