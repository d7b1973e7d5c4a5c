// hetnn._store: executables by network id, as a list of what is bound. Neither runtime nor compiler is linked in.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "bindings/errors.h"
#include "hetnn/program/pack.h"
#include "hetnn/store/store.h"

namespace py = pybind11;

namespace hetnn {
namespace {

using store::Store;

py::dict row_of(const store::Version& version) {
  return py::dict(py::arg("network") = version.network, py::arg("version") = version.version,
                  py::arg("hash") = version.hash, py::arg("target") = version.target, py::arg("bytes") = version.bytes);
}

void bind_store(py::module_& m) {
  const py::call_guard<py::gil_scoped_release> unlocked;
  py::class_<Store>(m, "Store", "A folder of executables by network id and version.")
      .def(py::init<std::string>(), py::arg("path"), unlocked)
      .def(
          "add_file",
          [](Store& s, const std::string& id, const std::string& path, std::optional<int64_t> version) {
            store::Version added;
            {
              const py::gil_scoped_release release;
              added = s.add_file(id, path, version);
            }
            return row_of(added);
          },
          py::arg("id"), py::arg("path"), py::arg("version") = py::none(), "Keeps a file's executable.")
      .def(
          "add_image",
          [](Store& s, const std::string& id, const py::bytes& image, std::optional<int64_t> version) {
            const std::string_view view(image);  // `image` outlives the call
            store::Version added;
            {
              const py::gil_scoped_release release;
              added = s.add(id, {nullptr, std::as_bytes(std::span(view.data(), view.size()))}, version);
            }
            return row_of(added);
          },
          py::arg("id"), py::arg("image"), py::arg("version") = py::none(), "Keeps an image.")
      .def(
          "find",
          [](Store& s, const std::string& id, std::optional<int64_t> version) -> py::object {
            std::optional<store::Version> found;
            {
              const py::gil_scoped_release release;
              found = s.find(id, version);
            }
            if (!found) return py::none();
            py::dict out = row_of(*found);
            out["path"] = s.file(*found);
            out["places"] = s.places(*found);
            return out;
          },
          py::arg("id"), py::arg("version") = py::none(),
          "A version, the one that runs unless named, and where its file is; None when there is none.")
      .def(
          "networks",
          [](Store& s) {
            std::vector<store::Network> rows;
            {
              const py::gil_scoped_release release;
              rows = s.list();
            }
            py::list out;
            for (const store::Network& row : rows) {
              out.append(py::dict(py::arg("network") = row.network, py::arg("versions") = row.versions,
                                  py::arg("bytes") = row.bytes));
            }
            return out;
          },
          "A row a network.")
      .def(
          "association",
          [](Store& s, const std::string& id, std::optional<int64_t> version) {
            store::Association found;
            {
              const py::gil_scoped_release release;
              found = s.association(id, version);
            }
            return py::make_tuple(row_of(found.version), found.document, found.deployed_on);
          },
          py::arg("id"), py::arg("version") = py::none(),
          "(the version, its nodes and subgraphs as JSON, the devices it is deployed on).")
      .def("remove", &Store::remove, py::arg("id"), py::arg("version") = py::none(), unlocked,
           "Forgets a version, or all.")
      .def(
          "deploy", &Store::deploy, py::arg("id"), py::arg("version"), py::arg("devices"), py::arg("places"), unlocked,
          "Makes the version, by default the newest, the one that runs, with the places of devices that are elsewhere.")
      .def("undeploy", &Store::undeploy, py::arg("id"), py::arg("version"), unlocked, "Takes the marks away.")
      .def(
          "deployed",
          [](Store& s) {
            std::vector<store::Version> rows;
            {
              const py::gil_scoped_release release;
              rows = s.deployed();
            }
            py::list out;
            for (const store::Version& row : rows) out.append(row_of(row));
            return out;
          },
          "A row a version that is deployed.")
      .def(
          "verify",
          [](Store& s) {
            std::vector<store::Damage> rows;
            {
              const py::gil_scoped_release release;
              rows = s.verify();
            }
            py::list out;
            for (const store::Damage& row : rows) {
              const bool whole = row.network.empty();
              out.append(
                  py::dict(py::arg("network") = whole ? py::object(py::none()) : py::object(py::str(row.network)),
                           py::arg("version") = whole ? py::object(py::none()) : py::object(py::int_(row.version)),
                           py::arg("what") = row.what));
            }
            return out;
          },
          "A row a damage; reads every byte.")
      .def(
          "gc",
          [](Store& s) {
            store::Freed freed;
            {
              const py::gil_scoped_release release;
              freed = s.gc();
            }
            return py::dict(py::arg("files") = freed.files, py::arg("bytes") = freed.bytes);
          },
          "Deletes files that no version names.");
  m.def(
      "check_id", [](const std::string& id) { store::check_id(id); }, py::arg("id"),
      "InvalidModel unless it is a network's id.");
}

}  // namespace
}  // namespace hetnn

PYBIND11_MODULE(_store, m) {
  m.doc() = "The store of hetnn: keeps executables by network id.";
  hetnn::register_errors();
  hetnn::bind_store(m);
}
