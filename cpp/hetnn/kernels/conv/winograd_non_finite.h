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

  /// The inputs of a tile, zeros where there are none.
  void find_pixels(const Place& at, const std::byte* input, const float** pixels) const;
  /// Of the inputs of a tile without what is not finite, of where that is, and of its sums.
  int64_t room_bytes() const {
    return (tiles_.points() * in_stride_ + tiles_.outputs() * out_stride_) * static_cast<int64_t>(sizeof(float)) +
           (most_ * static_cast<int64_t>(sizeof(WinogradElements)) + 63) / 64 * 64;
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
  WinogradElements* elements_in(float* room) const {
    return reinterpret_cast<WinogradElements*>(room + tiles_.points() * in_stride_ + tiles_.outputs() * out_stride_);
  }
  bool has_nan(const float* pixel) const;
  bool read_nan(const Place& at, const float* const* pixels) const;
  bool are_nan(const Place& at, Sums sums, int64_t channel) const;
  void sum_tile(MicroTile& part, const std::byte* const* pixels, const float* weights, int64_t channel,
                Sums sums) const;

  WindowGeometry g_;
  WinogradTiles tiles_;
  int64_t in_pitch_, in_stride_, out_stride_;
  int64_t panels_;
  int64_t most_;  // elements of a tile: one by one, more take about as long as all of its products
  AlignedBuffer zeros_;
  const MicroTable* micro_;
  const WinogradTable* transforms_;
  int width_;
};

}  // namespace hetnn::kernels
