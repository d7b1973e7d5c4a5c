// Translates the error kinds of base/error.h into the classes of hetnn.errors.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

#include "hetnn/base/error.h"

namespace hetnn {

/// Raises `hetnn.errors.<kind>` with the text of `error`. A text may quote bytes of a damaged file, so what is no UTF-8
/// in it is replaced.
inline void raise_python_error(const char* kind, const std::exception& error, const char* home = "hetnn.errors") {
  namespace py = pybind11;
  py::object type = py::module_::import(home).attr(kind);
  const std::string_view what = error.what();
  const auto size = static_cast<py::ssize_t>(what.size());
  const auto message = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(what.data(), size, "replace"));
  py::set_error(type, message);
}

/// Registers the translation in the calling module, for what is thrown in calls of it. Each extension module calls it
/// once.
inline void register_errors() {
  pybind11::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const InvalidModel& error) {
      raise_python_error("InvalidModel", error);
    } catch (const Unsupported& error) {
      raise_python_error("Unsupported", error);
    } catch (const DoesNotFit& error) {
      raise_python_error("DoesNotFit", error);
    } catch (const Unavailable& error) {
      raise_python_error("Unavailable", error);
    } catch (const Cancelled& error) {
      raise_python_error("CancelledError", error, "concurrent.futures");
    } catch (const InternalError& error) {
      raise_python_error("InternalError", error);
    } catch (const Error& error) {
      raise_python_error("Error", error);
    } catch (const std::bad_alloc&) {
      raise_python_error("DoesNotFit", DoesNotFit("this process can have no more memory. Give smaller inputs."));
    } catch (const std::length_error&) {
      raise_python_error("DoesNotFit", DoesNotFit("this process can have no more memory. Give smaller inputs."));
    }
  });
}

}  // namespace hetnn
