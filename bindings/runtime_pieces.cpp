// _runtime's tools for executable files: taking them apart, putting them together, saying what is wrong with them.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>

#include "hetnn/base/parallel.h"
#include "hetnn/program/hash.h"
#include "hetnn/program/pack.h"
#include "hetnn/runtime/executable.h"

namespace py = pybind11;

namespace hetnn {
namespace {

std::span<const std::byte> bytes_of(std::string_view view) {
  return std::as_bytes(std::span(view.data(), view.size()));
}

py::bytes to_python(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

py::dict take_apart(const py::bytes& image, const std::string& called) {
  const program::Pieces pieces = program::take_apart(bytes_of(std::string_view(image)), called);
  return py::dict(py::arg("program") = pieces.program, py::arg("report") = pieces.report,
                  py::arg("target") = pieces.target, py::arg("graph") = pieces.graph,
                  py::arg("weights") = to_python(pieces.weights));
}

py::bytes put_together(const std::string& program, const std::string& report, const std::string& target,
                       const py::bytes& weights, const std::optional<std::string>& graph) {
  const auto view = bytes_of(std::string_view(weights));
  return to_python(program::put_together({program, report, target, {view.begin(), view.end()}, graph}, HETNN_VERSION));
}

void verify(const std::string& path) {
  const std::string called = text("'", path, "'");
  const runtime::Executable executable(program::read_program(path, called), 1, called);
  program::verify_weights(path, called);
  executable.verify();
}

std::string quick_sum(const py::buffer& buffer) {
  Py_buffer view;
  if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE) != 0) throw py::error_already_set();
  const std::unique_ptr<Py_buffer, decltype(&PyBuffer_Release)> lent(&view, PyBuffer_Release);
  const py::gil_scoped_release release;
  return program::quick_sum({static_cast<const std::byte*>(view.buf), static_cast<size_t>(view.len)});
}

}  // namespace

void bind_runtime_pieces(py::module_& m) {
  m.def("take_apart", &take_apart, py::arg("image"), py::arg("called") = "the executable",
        "An image as program, report, target (texts), graph (a text or None) and weights (bytes); its hashes need not "
        "fit.");
  m.def("put_together", &put_together, py::arg("program"), py::arg("report"), py::arg("target"), py::arg("weights"),
        py::arg("graph") = py::none(), "The image of these pieces, with fitting hashes; nothing else is checked.");
  m.def("quick_sum", &quick_sum, py::arg("buffer"),
        "16 hexadecimal digits that follow from every byte and their number: what finds accidents, as fast as memory.");
  m.def("usable_threads", &usable_threads, py::arg("requested"),
        "Threads of a run that asks for so many; 0: as many as the process may use, or its environment says.");
  m.def("verify", &verify, py::arg("path"), py::call_guard<py::gil_scoped_release>(),
        "Raises what is wrong with a file: reads all of it, and plans runs for the sizes there is code for.");
}

}  // namespace hetnn
