// Runs hetnn executables from C++20: a header over hetnn.h, with exceptions, spans and futures.
//
//   hetnn::Executable exe = hetnn::Executable::load("model.hetnn");
//   std::vector<float> x(16);
//   std::vector<hetnn::Tensor> y = exe.run({hetnn::Tensor(x.data(), {1, 16})});
//   for (float value : y[0].data<float>()) ...
#ifndef HETNN_HETNN_HPP
#define HETNN_HETNN_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hetnn.h"

// The inline namespace keeps these names apart from the library's own where a program links it statically.
namespace hetnn::inline api_v1 {

/// Root of every error; the text says what was found, what was expected and what to do.
class Error : public std::runtime_error {
 public:
  Error(hetnn_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  hetnn_status status() const noexcept { return status_; }

 private:
  hetnn_status status_;
};

// NOLINTBEGIN(bugprone-macro-parentheses): a class's name takes none
#define HETNN_ERROR(Name, kStatus)                                         \
  class Name : public Error {                                              \
   public:                                                                 \
    explicit Name(const std::string& message) : Error(kStatus, message) {} \
  };
HETNN_ERROR(InvalidModel, HETNN_INVALID_MODEL)  // the file or an argument is wrong
HETNN_ERROR(Unsupported, HETNN_UNSUPPORTED)     // valid, but not something that can be done here
HETNN_ERROR(DoesNotFit, HETNN_DOES_NOT_FIT)     // exceeds a memory
HETNN_ERROR(InternalError, HETNN_INTERNAL)      // a bug in hetnn or in a device
HETNN_ERROR(Unavailable, HETNN_UNAVAILABLE)     // not now: too many runs, a deadline that passed, a device that is gone
HETNN_ERROR(Cancelled, HETNN_CANCELLED)         // the run was asked to stop
// NOLINTEND(bugprone-macro-parentheses)
#undef HETNN_ERROR

namespace detail {

inline std::exception_ptr error_of(hetnn_status status, const std::string& message) {
  switch (status) {
    case HETNN_INVALID_MODEL:
      return std::make_exception_ptr(InvalidModel(message));
    case HETNN_UNSUPPORTED:
      return std::make_exception_ptr(Unsupported(message));
    case HETNN_DOES_NOT_FIT:
      return std::make_exception_ptr(DoesNotFit(message));
    case HETNN_UNAVAILABLE:
      return std::make_exception_ptr(Unavailable(message));
    case HETNN_CANCELLED:
      return std::make_exception_ptr(Cancelled(message));
    default:
      return std::make_exception_ptr(InternalError(message));
  }
}

inline void check(hetnn_status status) {
  if (status != HETNN_OK) std::rethrow_exception(error_of(status, hetnn_error_message()));
}

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> : std::integral_constant<hetnn_dtype, HETNN_F32> {};
template <>
struct DTypeOf<double> : std::integral_constant<hetnn_dtype, HETNN_F64> {};
template <>
struct DTypeOf<std::int8_t> : std::integral_constant<hetnn_dtype, HETNN_I8> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<hetnn_dtype, HETNN_U8> {};
template <>
struct DTypeOf<std::int16_t> : std::integral_constant<hetnn_dtype, HETNN_I16> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<hetnn_dtype, HETNN_I32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<hetnn_dtype, HETNN_I64> {};
template <>
struct DTypeOf<bool> : std::integral_constant<hetnn_dtype, HETNN_BOOL> {};
template <>
struct DTypeOf<std::uint16_t> : std::integral_constant<hetnn_dtype, HETNN_U16> {};
template <>
struct DTypeOf<std::uint32_t> : std::integral_constant<hetnn_dtype, HETNN_U32> {};
template <>
struct DTypeOf<std::uint64_t> : std::integral_constant<hetnn_dtype, HETNN_U64> {};

inline std::size_t bytes_of(hetnn_dtype dtype) {
  switch (dtype) {
    case HETNN_F64:
    case HETNN_I64:
    case HETNN_U64:
      return 8;
    case HETNN_F32:
    case HETNN_I32:
    case HETNN_U32:
      return 4;
    case HETNN_F16:
    case HETNN_BF16:
    case HETNN_I16:
    case HETNN_U16:
      return 2;
    default:
      return 1;
  }
}

}  // namespace detail

/// Dense row-major values: of the caller, who keeps them, or made by a run. Copies share the values.
class Tensor {
 public:
  /// The caller's values.
  template <typename T>
  Tensor(T* data, std::vector<std::int64_t> shape)
      : Tensor(const_cast<std::remove_const_t<T>*>(data), detail::DTypeOf<std::remove_const_t<T>>::value,
               std::move(shape)) {}
  /// The caller's values of a type that C++ has no name for, such as f16.
  Tensor(void* data, hetnn_dtype dtype, std::vector<std::int64_t> shape)
      : data_(data), dtype_(dtype), shape_(std::move(shape)) {}

  hetnn_dtype dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::size_t elems() const {
    std::size_t count = 1;
    for (const std::int64_t dim : shape_) count *= static_cast<std::size_t>(dim);
    return count;
  }
  /// The values; InvalidModel when they are no Ts.
  template <typename T>
  std::span<T> data() const {
    if (detail::DTypeOf<std::remove_const_t<T>>::value != dtype_)
      throw InvalidModel("the tensor's values are of another type. Ask for data() of its dtype().");
    return {static_cast<T*>(data_), elems()};
  }
  /// The values' bytes, whatever their type.
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), elems() * detail::bytes_of(dtype_)}; }
  hetnn_tensor row() const {
    return {sizeof(hetnn_tensor), data_, dtype_, static_cast<std::int32_t>(shape_.size()), shape_.data()};
  }

 private:
  friend class Executable;
  // What a run has made.
  explicit Tensor(const hetnn_tensor& made)
      : data_(made.data), dtype_(made.dtype), shape_(made.dims, made.dims + made.rank) {
    owner_ = std::shared_ptr<void>(made.data, [made](void*) {
      hetnn_tensor tensor = made;
      hetnn_tensor_free(&tensor);
    });
  }

  void* data_;
  hetnn_dtype dtype_;
  std::vector<std::int64_t> shape_;
  std::shared_ptr<void> owner_;
};

/// An input or output; a dimension of -1 varies from run to run.
struct Port {
  std::string name;
  hetnn_dtype dtype;
  std::vector<std::int64_t> shape;
};

/// How an executable is loaded.
struct Options {
  int threads = 0;                // of one run; 0: as many as there are CPUs
  int max_concurrent_runs = 0;    // 0: no bound
  bool refuse_when_full = false;  // runs beyond the bound fail with Unavailable, instead of waiting
};

/// The states of one user of a model that keeps any; its runs happen one after another.
class Session {
 public:
  void reset() { detail::check(hetnn_session_reset(handle_.get())); }

 private:
  friend class Executable;
  explicit Session(hetnn_session* handle) : handle_(handle, &hetnn_session_free) {}
  std::unique_ptr<hetnn_session, void (*)(hetnn_session*)> handle_;
};

/// A run in the background, as a future of its outputs. One that dies unasked stops the run and waits for it.
class Run {
 public:
  Run(Run&&) = default;
  Run& operator=(Run&&) = delete;
  ~Run() {
    if (!state_ || !state_->handle) return;
    hetnn_cancel(state_->handle);
    state_->wait();
  }
  /// Waits for the outputs, or throws what the run ended with. Once.
  std::vector<Tensor> get();
  /// Asks the run to stop; get() then throws Cancelled, unless the run ended before.
  void cancel() { detail::check(hetnn_cancel(state_->handle)); }

 private:
  friend class Executable;
  struct State {
    std::vector<Tensor> inputs;  // keeps them
    std::vector<hetnn_tensor> outputs;
    hetnn_run_handle* handle = nullptr;

    hetnn_status wait() { return hetnn_wait(std::exchange(handle, nullptr)); }
    ~State() {
      for (hetnn_tensor& output : outputs) hetnn_tensor_free(&output);
    }
  };
  explicit Run(std::unique_ptr<State> state) : state_(std::move(state)) {}
  std::unique_ptr<State> state_;
};

/// A compiled model. Runs may be made from any thread, many at once.
class Executable {
 public:
  static Executable load(const std::string& path, const Options& options = {}) {
    const hetnn_options row = row_of(options);
    hetnn_executable* made = nullptr;
    detail::check(hetnn_load(path.c_str(), &row, &made));
    return Executable(made);
  }
  /// From a file's bytes, which are copied.
  static Executable load(std::span<const std::byte> image, const Options& options = {}) {
    const hetnn_options row = row_of(options);
    hetnn_executable* made = nullptr;
    detail::check(hetnn_load_memory(image.data(), image.size(), &row, &made));
    return Executable(made);
  }

  std::vector<Port> inputs() const { return ports(hetnn_input_count(handle_.get()), &hetnn_input); }
  std::vector<Port> outputs() const { return ports(hetnn_output_count(handle_.get()), &hetnn_output); }

  /// Runs on tensors in the model's order and returns the outputs.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, Session* session = nullptr) {
    std::vector<hetnn_tensor> out = empty();
    const std::vector<hetnn_tensor> in = rows(inputs);
    detail::check(hetnn_run(handle_.get(), handle(session), in.data(), in.size(), out.data(), out.size()));
    return made(out);
  }
  /// The same into memory of the caller, as large as the outputs will be.
  void run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, Session* session = nullptr) {
    const std::vector<hetnn_tensor> in = rows(inputs);
    std::vector<hetnn_tensor> out = rows(outputs);
    detail::check(hetnn_run(handle_.get(), handle(session), in.data(), in.size(), out.data(), out.size()));
  }
  /// Begins a run; its inputs' values must stay until it ends. After `timeout` it ends with Unavailable; 0: no limit.
  Run run_async(const std::vector<Tensor>& inputs, Session* session = nullptr,
                std::chrono::microseconds timeout = std::chrono::microseconds(0)) {
    auto state = std::make_unique<Run::State>();
    state->inputs = inputs;
    state->outputs = empty();
    const std::vector<hetnn_tensor> in = rows(state->inputs);
    const hetnn_run_options options = {sizeof(hetnn_run_options), timeout.count(), nullptr, nullptr};
    detail::check(hetnn_run_async(handle_.get(), handle(session), in.data(), in.size(), state->outputs.data(),
                                  state->outputs.size(), &options, &state->handle));
    return Run(std::move(state));
  }

  Session session() const {
    hetnn_session* made = nullptr;
    detail::check(hetnn_session_new(handle_.get(), &made));
    return Session(made);
  }
  hetnn_executable* handle() const { return handle_.get(); }

 private:
  friend class Run;
  explicit Executable(hetnn_executable* handle) : handle_(handle, &hetnn_free) {}

  static hetnn_options row_of(const Options& options) {
    return {sizeof(hetnn_options), options.threads, options.max_concurrent_runs, options.refuse_when_full ? 1 : 0};
  }
  static hetnn_session* handle(Session* session) { return session ? session->handle_.get() : nullptr; }
  static std::vector<hetnn_tensor> rows(const std::vector<Tensor>& tensors) {
    std::vector<hetnn_tensor> out;
    out.reserve(tensors.size());
    for (const Tensor& tensor : tensors) out.push_back(tensor.row());
    return out;
  }
  // Outputs that the run makes.
  std::vector<hetnn_tensor> empty() const {
    return std::vector<hetnn_tensor>(hetnn_output_count(handle_.get()),
                                     {sizeof(hetnn_tensor), nullptr, HETNN_F32, 0, nullptr});
  }
  static std::vector<Tensor> made(std::vector<hetnn_tensor>& rows) {
    std::vector<Tensor> out;
    out.reserve(rows.size());
    for (hetnn_tensor& row : rows) {
      out.push_back(Tensor(row));
      row.data = nullptr;
    }
    return out;
  }
  template <typename Get>
  std::vector<Port> ports(std::size_t count, Get get) const {
    std::vector<Port> out;
    for (std::size_t k = 0; k < count; ++k) {
      hetnn_port row = {sizeof(hetnn_port), nullptr, HETNN_F32, 0, nullptr};
      detail::check(get(handle_.get(), k, &row));
      out.push_back({row.name, row.dtype, {row.dims, row.dims + row.rank}});
    }
    return out;
  }

  std::unique_ptr<hetnn_executable, void (*)(hetnn_executable*)> handle_;
};

inline std::vector<Tensor> Run::get() {
  detail::check(state_->wait());
  return Executable::made(state_->outputs);
}

}  // namespace hetnn::inline api_v1

#endif
