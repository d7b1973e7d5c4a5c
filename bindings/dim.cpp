// _core.Dim: sizes that depend on a model's symbols, in Python's hands.
#include "hetnn/base/dim.h"

#include <pybind11/operators.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "bindings/dims.h"
#include "hetnn/base/dim_substitute.h"
#include "hetnn/base/error.h"

namespace py = pybind11;

namespace hetnn {

Size size_of(const Dim& dim) { return dim.is_static() ? py::object(py::int_(dim.value())) : py::cast(dim); }

Dim dim_of(const py::handle& object) {
  if (py::isinstance<Dim>(object)) return object.cast<const Dim&>();
  if (py::isinstance<py::str>(object)) return Dim::parse(object.cast<std::string>());
  if (!PyIndex_Check(object.ptr())) {
    throw InvalidModel(text("a dimension is an int, a Dim or the text of an expression; got ",
                            py::repr(object).cast<std::string>(), "."));
  }
  const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) throw InvalidModel("a dimension exceeds 64-bit integers. Check the model's sizes.");
  return value;
}

namespace {

// The function on two sizes, given the first or, `turned`, the second as the object that Python asks.
template <typename Function>
auto with(Function function, bool turned = false) {
  return [function, turned](const Dim& self, const Size& other) -> Size {
    if (!py::isinstance<Dim>(other) && !PyIndex_Check(other.ptr()))
      return py::reinterpret_borrow<Size>(Py_NotImplemented);
    const Dim given = dim_of(other);
    return size_of(turned ? function(given, self) : function(self, given));
  };
}

std::string name_of(const Dim& dim) {
  std::set<std::string> symbols;
  dim.collect_symbols(symbols);
  return symbols.size() == 1 && dim == Dim::symbol(*symbols.begin()) ? *symbols.begin() : "";
}

}  // namespace

void bind_dim(py::module_& m) {
  constexpr auto sum = [](const Dim& a, const Dim& b) { return a + b; };
  constexpr auto difference = [](const Dim& a, const Dim& b) { return a - b; };
  constexpr auto product = [](const Dim& a, const Dim& b) { return a * b; };
  constexpr auto quotient = [](const Dim& a, const Dim& b) { return floor_div(a, b); };
  constexpr auto remainder = [](const Dim& a, const Dim& b) { return mod(a, b); };
  const auto of_both = [](auto function) {
    return [function](const Size& a, const Size& b) { return size_of(function(dim_of(a), dim_of(b))); };
  };
  py::class_<Dim>(m, "Dim",
                  "A size that depends on symbols, in canonical form: equal expressions are equal and hash alike.\n\n"
                  "With ints and other sizes it adds, subtracts, multiplies and divides, the quotient cut downwards. "
                  "What comes out is an int where no symbol is left. InvalidModel beyond 64 bits.")
      .def_static(
          "symbol", [](const std::string& name) { return Dim::symbol(name); }, py::arg("name"))
      .def_static(
          "parse", [](const std::string& source) { return size_of(Dim::parse(source)); }, py::arg("source"),
          "A size from the text that `str` gives. InvalidModel with the place that cannot be read.")
      .def_static("max", of_both([](const Dim& a, const Dim& b) { return max(a, b); }), py::arg("a"), py::arg("b"))
      .def_static("min", of_both([](const Dim& a, const Dim& b) { return min(a, b); }), py::arg("a"), py::arg("b"))
      .def("__add__", with(sum), py::arg("other"), py::is_operator())
      .def("__radd__", with(sum, true), py::arg("other"), py::is_operator())
      .def("__sub__", with(difference), py::arg("other"), py::is_operator())
      .def("__rsub__", with(difference, true), py::arg("other"), py::is_operator())
      .def("__mul__", with(product), py::arg("other"), py::is_operator())
      .def("__rmul__", with(product, true), py::arg("other"), py::is_operator())
      .def("__floordiv__", with(quotient), py::arg("other"), py::is_operator())
      .def("__rfloordiv__", with(quotient, true), py::arg("other"), py::is_operator())
      .def("__mod__", with(remainder), py::arg("other"), py::is_operator())
      .def("__rmod__", with(remainder, true), py::arg("other"), py::is_operator())
      .def("__neg__", [](const Dim& a) { return size_of(-a); })
      .def(
          "__eq__",
          [](const Dim& a, const py::object& b) { return py::isinstance<Dim>(b) && a == b.cast<const Dim&>(); },
          py::arg("other"))
      .def("__hash__", [](const Dim& a) { return std::hash<std::string>{}(a.to_string()); })
      .def("__str__", &Dim::to_string)
      .def("__repr__", &Dim::to_string)
      .def_property_readonly("name", &name_of,
                             "The symbol's name where the size is one symbol and nothing more, or \"\".")
      .def_property_readonly(
          "symbols",
          [](const Dim& a) {
            std::set<std::string> symbols;
            a.collect_symbols(symbols);
            return symbols;
          },
          "The names of all symbols in it.")
      .def_property_readonly("never_negative", &Dim::never_negative,
                             "Whether the form shows that it is at least 0 where its symbols are.")
      .def(
          "substitute",
          [](const Dim& a, const std::map<std::string, Size>& values) {
            std::map<std::string, Dim, std::less<>> read;
            for (const auto& [name, value] : values) read.emplace(name, dim_of(value));
            return size_of(substitute(a, read));
          },
          py::arg("values"), "With sizes in the place of symbols, by their names; the others stay.");
}

}  // namespace hetnn
