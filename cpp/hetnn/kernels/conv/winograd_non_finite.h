// Tiles of a Winograd convolution with elements that are not finite, whose products would reach all of a tile.
//
// Where they are few, the tile is transformed without them, and each of them is multiplied by its weights and added to
// the outputs that read it. Where they are many, the outputs are summed directly.
#pragma once

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/kernels/conv/winograd.h"
#include "hetnn/kernels/conv/winograd_transform.h"
#include "hetnn/kernels/gemm/micro.h"

namespace hetnn::kernels {

class NonFiniteTiles {
 public:
  using Place = WinogradTiles::Place;
  /// Of the outputs of a tile.
  struct Sums {
    float* at;
    int64_t stride;  // elements from one output to the next
    float* of(int64_t output) const { return at + output * stride; }
  };

  /// `in_pitch`: elements between pixels; the strides: channels up to what transforms read and write.
  NonFiniteTiles(const WindowGeometry& g, int64_t side, int64_t in_pitch, int64_t in_stride, int64_t out_stride);

  /// A pixel of the input, or zeros where there is none.
  const float* pixel_at(const std::byte* input, int64_t n, int64_t y, int64_t x) const {
    if (y < 0 || y >= g_.height || x < 0 || x >= g_.width) return zeros_.as<float>();
    return reinterpret_cast<const float*>(input) + ((n * g_.height + y) * g_.width + x) * in_pitch_;
  }
  /// Of the inputs of a tile without what is not finite, and of its sums.
  int64_t room_bytes() const {
    return (tiles_.points() * in_stride_ + tiles_.outputs() * out_stride_) * static_cast<int64_t>(sizeof(float));
  }
  /// Transforms a tile without its elements that are not finite; false where they are many.
  bool transform(WinogradInputTile tile, float* room) const;
  /// Of a tile so transformed, the sums of its products and of those elements, `out_stride` apart, in the room; null
  /// where a product is not finite.
  const float* sums_of(const WinogradOutputTile& tile, const Place& at, const std::byte* const* inputs,
                       float* room) const;
  /// The sums of a tile's outputs for the channels from one on.
  void sum_directly(const Place& at, int64_t channel, const std::byte* const* inputs, Sums sums) const;

 private:
  bool has_nan(const float* pixel) const;
  bool read_nan(const Place& at, const std::byte* input) const;
  bool are_nan(const Place& at, Sums sums, int64_t channel) const;
  void sum_tile(MicroTile& part, const std::byte* const* pixels, const float* weights, int64_t channel,
                Sums sums) const;

  WindowGeometry g_;
  WinogradTiles tiles_;
  int64_t in_pitch_, in_stride_, out_stride_;
  int64_t panels_;
  AlignedBuffer zeros_;
  const MicroTable* micro_;
  const WinogradTable* transforms_;
  int width_;
};

}  // namespace hetnn::kernels
