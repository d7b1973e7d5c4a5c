// The error kinds of hetnn. Throw one when a call cannot complete; an expected answer is a return value.
#pragma once

#include <initializer_list>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace hetnn {

/// Root of every error hetnn throws. The text says what was found, what was expected and what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The model, problem, file or argument is wrong (a ValueError in Python).
class InvalidModel : public Error {
 public:
  using Error::Error;
};

/// Something valid that hetnn or the target cannot do (a NotImplementedError in Python).
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// Something that exceeds a memory or a budget (a MemoryError in Python).
class DoesNotFit : public Error {
 public:
  using Error::Error;
};

/// What could be done but not now: more runs than are let in, a deadline that passed, a device that is gone.
class Unavailable : public Error {
 public:
  using Error::Error;
};

/// A run that was asked to stop.
class Cancelled : public Error {
 public:
  using Error::Error;
};

/// A bug in hetnn: names the file and line that noticed it.
class InternalError : public Error {
 public:
  using Error::Error;
};

namespace detail {

/// A value to be printed, and how.
struct Printed {
  const void* value;
  void (*print)(std::ostream& out, const void* value);
};
void print_characters(std::ostream& out, const void* value);
std::string join(std::initializer_list<Printed> parts);

/// One function a type: messages are many, and each prints what no other does.
template <typename T>
Printed printed(const T& value) {
  if constexpr (std::is_array_v<T>) {
    return {&value, print_characters};
  } else {
    return {&value, [](std::ostream& out, const void* given) { out << *static_cast<const T*>(given); }};
  }
}

}  // namespace detail

/// Joins its arguments into one string, as `<<` prints them.
template <typename... Args>
std::string text(const Args&... args) {
  return detail::join({detail::printed(args)...});
}

[[noreturn]] void throw_internal_error(const char* file, int line, const char* condition, const std::string& message);

}  // namespace hetnn

/// Checks an invariant of hetnn itself, in every build; its failure is a bug. Further arguments form the message.
#define HETNN_ASSERT(condition, ...)                                                             \
  do {                                                                                           \
    if (!(condition)) [[unlikely]]                                                               \
      ::hetnn::throw_internal_error(__FILE__, __LINE__, #condition, ::hetnn::text(__VA_ARGS__)); \
  } while (false)
