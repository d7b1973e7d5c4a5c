// The decoder of images that Python registers.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "hetnn/ops/vision/image_decoder.h"

namespace py = pybind11;

namespace hetnn {
namespace {

using Pixels = py::array_t<uint8_t, py::array::c_style | py::array::forcecast>;

void set_image_decoder(const py::object& decode) {
  // Kept for good: threads may ask for it until the process ends.
  auto* kept = new py::object(decode);
  ops::set_image_decoder([kept](std::span<const std::byte> file, std::string_view format) {
    const py::gil_scoped_acquire gil;
    const py::bytes bytes(reinterpret_cast<const char*>(file.data()), file.size());
    const Pixels made = (*kept)(bytes, py::str(format.data(), format.size())).cast<Pixels>();
    if (made.ndim() != 3) return ops::Image();
    return ops::Image{made.shape(0), made.shape(1), made.shape(2), {made.data(), made.data() + made.size()}};
  });
}

}  // namespace

void bind_runtime_images(py::module_& m) {
  m.def(
      "set_image_decoder", &set_image_decoder, py::arg("decode"),
      "From now on images are read by `decode(bytes, format)`, which gives an array of bytes [height,width,channels].");
}

}  // namespace hetnn
