// The decoder of images that this process has: operators ask it, hetnn itself reads no image format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace hetnn::ops {

/// Pixels row by row, the channels of each together: [height, width, channels].
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

/// Reads a file's bytes into `RGB`, `BGR` or `Grayscale`; of bytes that are no image it makes one without pixels. It
/// may be called by several threads at once.
using ImageDecoder = std::function<Image(std::span<const std::byte> file, std::string_view format)>;

/// From now on this one is asked.
void set_image_decoder(ImageDecoder decoder);

}  // namespace hetnn::ops
