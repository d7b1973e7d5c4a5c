// hetnn._runtime: loads and runs executables, as a list of what is bound. Nothing of the compiler is linked in.
#include <pybind11/pybind11.h>

#include "bindings/errors.h"

namespace hetnn {
void bind_runtime_counters(pybind11::module_& m);
void bind_runtime_devices(pybind11::module_& m);
void bind_runtime_element_types(pybind11::module_& m);
void bind_runtime_executable(pybind11::module_& m);
void bind_runtime_inside(pybind11::module_& m);
void bind_runtime_images(pybind11::module_& m);
void bind_runtime_pieces(pybind11::module_& m);
void bind_runtime_queue(pybind11::module_& m);
void bind_runtime_regions(pybind11::module_& m);
void bind_runtime_sequences(pybind11::module_& m);
void bind_runtime_serve(pybind11::module_& m);
void bind_runtime_watch(pybind11::module_& m);
}  // namespace hetnn

PYBIND11_MODULE(_runtime, m) {
  m.doc() = "The runtime of hetnn: loads and runs executables.";
  hetnn::register_errors();
  hetnn::bind_runtime_counters(m);
  hetnn::bind_runtime_devices(m);
  hetnn::bind_runtime_element_types(m);
  hetnn::bind_runtime_executable(m);
  hetnn::bind_runtime_inside(m);
  hetnn::bind_runtime_images(m);
  hetnn::bind_runtime_pieces(m);
  hetnn::bind_runtime_serve(m);
  hetnn::bind_runtime_regions(m);
  hetnn::bind_runtime_sequences(m);
  hetnn::bind_runtime_queue(m);
  hetnn::bind_runtime_watch(m);
  m.attr("version") = HETNN_VERSION;
}
