// _runtime.Inference and what goes with it: requests that are read, fitted to a network and answered.
#include "bindings/runtime_serve.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <optional>

#include "hetnn/runtime/executable.h"
#include "hetnn/serve/grpc_form.h"
#include "hetnn/serve/http_form.h"

namespace py = pybind11;

namespace hetnn {
namespace {

using serve::Bound;
using serve::Bytes;
using serve::Inference;
using serve::Signature;

// Below so many bytes, handing the GIL over and back takes longer than the work.
constexpr size_t kWorthReleasing = 1 << 16;

// Of bytes, or of a bytearray that nobody changes any more.
Bytes bytes_of(const py::object& object) {
  std::string_view data;
  if (PyByteArray_Check(object.ptr())) {
    data = {PyByteArray_AS_STRING(object.ptr()), static_cast<size_t>(PyByteArray_GET_SIZE(object.ptr()))};
  } else {
    data = py::cast<std::string_view>(py::cast<py::bytes>(object));
  }
  return {kept_alive(object), {reinterpret_cast<const std::byte*>(data.data()), data.size()}};
}

template <typename Work>
auto without_gil(size_t bytes, Work&& work) {
  std::optional<py::gil_scoped_release> release;
  if (bytes >= kWorthReleasing) release.emplace();
  return work();
}

std::unique_ptr<Request> read_http(const py::object& body, std::string model, std::string version,
                                   std::optional<int64_t> head_bytes) {
  const Bytes bytes = bytes_of(body);
  auto out = std::make_unique<Request>();
  static_cast<Inference&>(*out) = without_gil(
      bytes.data.size(), [&] { return serve::read_http(std::move(model), std::move(version), bytes, head_bytes); });
  out->body = body;
  out->head_bytes = head_bytes;
  return out;
}

std::unique_ptr<Request> read_grpc(const py::bytes& message) {
  const Bytes bytes = bytes_of(message);
  auto out = std::make_unique<Request>();
  static_cast<Inference&>(*out) = without_gil(bytes.data.size(), [&] { return serve::read_grpc(bytes); });
  out->grpc = true;
  out->body = message;
  return out;
}

py::object sequence_of(const Request& request) {
  if (request.sequence.empty()) return py::none();
  if (!request.sequence_is_number) return py::str(request.sequence);
  return py::reinterpret_steal<py::object>(PyLong_FromString(request.sequence.c_str(), nullptr, 10));
}

// The answer's bytes, and those of its JSON where raw tensors follow.
py::tuple write(const Request& request, const std::string& version, const Bound& bound, const Outputs& outputs) {
  const serve::Written written = request.grpc ? serve::write_grpc(request, version, bound, outputs.tensors)
                                              : serve::write_http(request, version, bound, outputs.tensors);
  size_t size = 0;
  for (const auto& piece : written.pieces) size += piece.text.size() + piece.values.size();
  auto out = py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(size)));
  if (!out) throw py::error_already_set();
  char* to = PyBytes_AS_STRING(out.ptr());
  without_gil(size, [&] {
    for (const auto& piece : written.pieces) {
      to = std::copy(piece.text.begin(), piece.text.end(), to);
      if (!piece.values.empty()) std::memcpy(to, piece.values.data(), piece.values.size());
      to += piece.values.size();
    }
  });
  return py::make_tuple(std::move(out), written.head_bytes);
}

Signature signature_of(std::string network, const runtime::Executable& executable) {
  return serve::signature_of(std::move(network), *executable.program());
}

// Name, datatype, and the numbers of the network's ports: the values, or the bytes and the spans of texts.
py::list rows(const std::vector<Signature::Port>& ports) {
  py::list out;
  for (const Signature::Port& port : ports) {
    const auto name = port.dtype ? kserve_name(*port.dtype) : serve::kTexts;
    out.append(py::make_tuple(port.name, std::string(name), port.port, port.spans));
  }
  return out;
}

}  // namespace

std::shared_ptr<const void> kept_alive(const py::object& object) {
  // The last to let go may be a thread without the GIL.
  return {new py::object(object), [](const void* kept) {
            const py::gil_scoped_acquire gil;
            delete static_cast<const py::object*>(kept);
          }};
}

void bind_runtime_serve(py::module_& m) {
  py::class_<Outputs>(m, "Outputs", "What a run made, in the network's order.").def("__len__", [](const Outputs& own) {
    return own.tensors.size();
  });
  py::class_<Bound>(m, "Bound", "A request's inputs in a network's order, and the outputs that it wants.")
      .def_readonly("rows", &Bound::rows, "The first size of its inputs.");
  py::class_<Request>(m, "Inference", "A request, read from either form of the protocol. A pickle has its bytes.")
      .def_static("from_http", &read_http, py::arg("body"), py::arg("model"), py::arg("version") = "",
                  py::arg("head_bytes") = py::none(),
                  "With head_bytes, raw tensors follow that many bytes of JSON. InvalidModel when sizes or contents "
                  "disagree with what describes them.")
      .def_static("from_grpc", &read_grpc, py::arg("message"), "From the bytes of a ModelInferRequest.")
      .def_readonly("model", &Request::model)
      .def_readonly("version", &Request::version)
      .def_readonly("id", &Request::id)
      .def_readonly("sequence_start", &Request::sequence_start)
      .def_readonly("sequence_end", &Request::sequence_end)
      .def_readonly("priority", &Request::priority)
      .def_readonly("timeout_us", &Request::timeout_us)
      .def_property_readonly("sequence", &sequence_of, "A number or a text; None when it belongs to no sequence.")
      .def("write", &write, py::arg("version"), py::arg("bound"), py::arg("outputs"),
           "The answer's bytes in the request's form, and how many of them are JSON where raw tensors follow.")
      .def(py::pickle(
          [](const Request& own) { return py::make_tuple(own.grpc, own.body, own.head_bytes, own.model, own.version); },
          [](const py::tuple& state) {
            const auto body = state[1].cast<py::object>();
            if (state[0].cast<bool>()) return read_grpc(py::cast<py::bytes>(body));
            return read_http(body, state[3].cast<std::string>(), state[4].cast<std::string>(),
                             state[2].cast<std::optional<int64_t>>());
          }));
  py::class_<Signature>(m, "Signature", "Names and types of a network's inputs and outputs, as clients see them.")
      .def(py::init(&signature_of), py::arg("network"), py::arg("executable"),
           "Unsupported when the protocol has no name for a type.")
      .def_property_readonly(
          "inputs", [](const Signature& own) { return rows(own.inputs); },
          "Name, datatype, and the number of the executable's input, of each; of texts those of the bytes "
          "and of the spans.")
      .def_property_readonly(
          "outputs", [](const Signature& own) { return rows(own.outputs); }, "The same of its outputs.")
      .def(
          "bind", [](const Signature& own, const Request& request) { return serve::bind(request, own); },
          py::arg("request"), "InvalidModel when the request does not fit.");
  py::dict names;
  for (const DType dtype : kComputedDTypes) {
    names[py::str(std::string(dtype_name(dtype)))] = py::str(std::string(kserve_name(dtype)));
  }
  m.attr("DATATYPES") = names;
}

}  // namespace hetnn
