// hetnn._core: the compiler tower and the tools, as a list of what is bound.
#include <pybind11/pybind11.h>

#include "bindings/errors.h"

namespace hetnn {
void bind_backends(pybind11::module_& m);
void bind_compile(pybind11::module_& m);
void bind_extract(pybind11::module_& m);
void bind_dim(pybind11::module_& m);
void bind_graph(pybind11::module_& m);
void bind_npu_tools(pybind11::module_& m);
void bind_options(pybind11::module_& m);
void bind_operators(pybind11::module_& m);
void bind_plan_problem(pybind11::module_& m);
void bind_passes(pybind11::module_& m);
void bind_quantize(pybind11::module_& m);
void bind_windows(pybind11::module_& m);
}  // namespace hetnn

PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiler of hetnn and its tools.";
  hetnn::register_errors();
  hetnn::bind_backends(m);
  hetnn::bind_dim(m);
  hetnn::bind_graph(m);
  hetnn::bind_compile(m);
  hetnn::bind_extract(m);
  hetnn::bind_npu_tools(m);
  hetnn::bind_operators(m);
  hetnn::bind_options(m);
  hetnn::bind_plan_problem(m);
  hetnn::bind_passes(m);
  hetnn::bind_quantize(m);
  hetnn::bind_windows(m);
  m.attr("version") = HETNN_VERSION;
}
