// image_decode: the pixels of an encoded image.
#include <algorithm>
#include <memory>
#include <mutex>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/late.h"
#include "hetnn/ops/vision/image_decoder.h"

namespace hetnn::ops {
namespace {

struct Registered {
  std::mutex mutex;
  std::shared_ptr<const ImageDecoder> decoder;
};

// Never destroyed: what it holds may belong to an interpreter that is gone by then.
Registered& registered() {
  static auto* only = new Registered;
  return *only;
}

std::vector<Type> infer(const Call& call) {
  const Type& file = call.input(0);
  const std::string& format = call.string("format");
  if (file.dtype != DType::u8 || file.rank() != 1 || file.quant || call.integers("sizes").size() != 3) {
    fail(call, "image_decode_c1",
         text("an encoded image must be u8[n], its result of rank 3; got ", to_string(file), "."));
  }
  if (format != "RGB" && format != "BGR" && format != "Grayscale") {
    fail(call, "image_decode_c2", text("format must be RGB, BGR or Grayscale; got '", format, "'."));
  }
  return {{DType::u8, call.integers("sizes")}};
}

void meaning(const Evaluation& e) {
  const int64_t channels = e.call.string("format") == "Grayscale" ? 1 : 3;
  if (e.input(0).elems() == 0) {
    late_output(e, {0, 0, channels});
    return;
  }
  std::shared_ptr<const ImageDecoder> decoder;
  {
    const std::lock_guard lock(registered().mutex);
    decoder = registered().decoder;
  }
  if (!decoder) {
    throw Unsupported(text(describe(e.call),
                           ": this process has no decoder of images. In Python, import hetnn and install "
                           "Pillow (hetnn[images]); in C++, call hetnn::ops::set_image_decoder."));
  }
  const View& file = e.input(0);
  const Image image = (*decoder)({file.data, static_cast<size_t>(file.elems())}, e.call.string("format"));
  if (image.height < 0 || image.width < 0 || image.channels != channels ||
      (image.height > 0 && image.width > static_cast<int64_t>(image.pixels.size())) ||
      static_cast<size_t>(image.height) * static_cast<size_t>(image.width) * static_cast<size_t>(channels) !=
          image.pixels.size()) {
    fail(e.call, "image_decode_c3",
         text("the decoder gave ", image.pixels.size(), " bytes for ", image.height, " x ", image.width, " pixels of ",
              image.channels, " channels."));
  }
  const Result y = late_output(e, {image.height, image.width, channels});
  std::ranges::copy(image.pixels, y.values<uint8_t>());
}

}  // namespace

void set_image_decoder(ImageDecoder decoder) {
  const std::lock_guard lock(registered().mutex);
  registered().decoder = std::make_shared<const ImageDecoder>(std::move(decoder));
}

OpDef define_image_decode() {
  return {.name = "image_decode",
          .doc =
              "The pixels [height,width,channels] of an encoded image, by the decoder that the process has; of bytes "
              "that are no image none.",
          .inputs = {{"file", "u8[n]: the bytes of an image file"}},
          .attrs = {{"format", AttrKind::string, std::string("RGB"), "RGB, BGR or Grayscale"}, sizes_attr()},
          .onnx = {{"ImageDecoder"}},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"image_decode(u8[0]) {sizes = [a,b,3]}",
                      "image_decode(u8[0]) {format = Grayscale, sizes = [0,0,1]}"}};
}

}  // namespace hetnn::ops
