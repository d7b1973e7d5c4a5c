// Between C and C++: errors as statuses, and structs of older and newer callers.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include "hetnn/base/error.h"
#include "hetnn/capi/hetnn.h"

namespace hetnn::capi {

/// Keeps the text for hetnn_error_message of this thread.
hetnn_status remember(hetnn_status status, const char* message) noexcept;
/// What is being handled, as a status; its text is kept.
hetnn_status remember_current() noexcept;
/// Throws the error that a status stands for.
[[noreturn]] void raise(hetnn_status status, const std::string& message);

template <typename F>
hetnn_status guard(F&& body) noexcept {
  try {
    body();
    return HETNN_OK;
  } catch (...) {
    return remember_current();
  }
}

/// InvalidModel unless `pointer` is something.
inline void require(const void* pointer, const char* called) {
  if (!pointer) throw InvalidModel(text(called, " is null. Pass a pointer to one."));
}

/// More than any version's structs have.
inline constexpr size_t kMostStruct_bytes = 4096;

/// The caller's struct as this version has it: members it does not know are zero. `least` is the size of the first
/// version. A larger struct of a later version is taken as long as what is not known here is zero.
template <typename T>
T taken(const T* given, size_t least, const char* called) {
  require(given, called);
  const size_t size = given->size;
  if (size == sizeof(T)) return *given;
  if (size < least || size > kMostStruct_bytes) {
    throw InvalidModel(text(called, ".size is ", size, "; it must be sizeof(", called, "), which is ", sizeof(T),
                            " in this version and was never less than ", least, "."));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](unsigned char byte) { return byte != 0; })) {
    throw InvalidModel(text(called, " has members set that version ", hetnn_version(),
                            " does not know. Install a newer libhetnn_runtime."));
  }
  T out{};
  std::memcpy(&out, given, std::min(size, sizeof(T)));
  return out;
}

/// Fills the caller's struct as far as it knows it.
template <typename T>
void give(const T& filled, T* to) {
  const size_t size = to->size;
  std::memcpy(static_cast<void*>(to), &filled, std::min(size, sizeof(T)));
  to->size = size;
}

}  // namespace hetnn::capi
