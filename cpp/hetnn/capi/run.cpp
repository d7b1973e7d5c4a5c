// Runs from C: arguments checked, outputs written where they lie or made, at once or in the background.
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory_resource>
#include <mutex>
#include <new>
#include <optional>

#include "hetnn/base/background.h"
#include "hetnn/base/counted.h"
#include "hetnn/capi/guard.h"
#include "hetnn/capi/handles.h"
#include "hetnn/runtime/disjoint.h"

namespace hetnn::capi {
namespace {

constexpr size_t kFirstTensor_bytes = offsetof(hetnn_tensor, dims) + sizeof(const int64_t*);
constexpr size_t kFirstRunOptions_bytes = offsetof(hetnn_run_options, user) + sizeof(void*);
constexpr int32_t kMostRank = 64;

// The memory of an output that the run makes: its dims, then its values.
class Made {
 public:
  Made(DType dtype, std::span<const int64_t> shape) : dtype_(dtype), rank_(static_cast<int32_t>(shape.size())) {
    int64_t bytes = dtype_bytes(dtype);
    for (const int64_t dim : shape) bytes *= dim;
    const auto before = static_cast<size_t>(program::aligned(static_cast<int64_t>(shape.size() * sizeof(int64_t))));
    block_ = ::operator new (before + static_cast<size_t>(bytes), std::align_val_t{program::kAlignment});
    std::copy(shape.begin(), shape.end(), static_cast<int64_t*>(block_));
    data_ = static_cast<std::byte*>(block_) + before;
  }
  Made(Made&& other) noexcept
      : dtype_(other.dtype_), rank_(other.rank_), block_(std::exchange(other.block_, nullptr)), data_(other.data_) {}
  Made& operator=(Made&&) = delete;
  ~Made() { release(block_); }

  std::byte* data() const { return data_; }
  void hand_over(hetnn_tensor* to) {
    to->data = data_;
    to->dtype = c_dtype(dtype_);
    to->rank = rank_;
    to->dims = static_cast<const int64_t*>(std::exchange(block_, nullptr));
  }
  static void release(void* block) { ::operator delete (block, std::align_val_t{program::kAlignment}); }

 private:
  const DType dtype_;
  const int32_t rank_;
  void* block_;
  std::byte* data_;
};

// Fills `view` with a tensor, once it was checked for itself, and gives its memory. `kept` takes a copy of the dims,
// where there is one.
runtime::Memory check(const hetnn_tensor* tensor, bool output, size_t index, std::pmr::memory_resource* kept,
                      ops::View& view) {
  const auto called = [&] { return text(output ? "output " : "input ", index); };
  const hetnn_tensor t = taken(tensor, kFirstTensor_bytes, "hetnn_tensor");
  if (output && !t.data) return {nullptr, 0};
  if (t.dtype < 0 || static_cast<size_t>(t.dtype) >= std::size(kAllDTypes))
    throw InvalidModel(text(called(), ": there is no element type ", static_cast<int>(t.dtype), "."));
  if (t.rank < 0 || t.rank > kMostRank || (t.rank > 0 && !t.dims)) {
    throw InvalidModel(text(called(), ": its rank is ", t.rank, " and its dims are ", t.dims ? "there" : "null",
                            "; wanted are a rank of 0 to ", kMostRank, " and as many dims."));
  }
  const auto dtype = static_cast<DType>(t.dtype);
  const int64_t element_bytes = dtype_bytes(dtype);
  int64_t bytes = element_bytes;
  std::span<const int64_t> dims(t.dims, static_cast<size_t>(t.rank));
  if (kept) {
    auto* const copy = static_cast<int64_t*>(kept->allocate(std::max<size_t>(dims.size_bytes(), 1)));
    std::ranges::copy(dims, copy);
    dims = {copy, dims.size()};
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 0 || __builtin_mul_overflow(bytes, dims[d], &bytes))
      throw InvalidModel(text(called(), ": no memory holds its dims; dimension ", d, " is ", dims[d], "."));
  }
  if (bytes > 0 && !t.data) throw InvalidModel(text(called(), ": its data is null, and should be ", bytes, " bytes."));
  if ((reinterpret_cast<uintptr_t>(t.data) & static_cast<uintptr_t>(element_bytes - 1)) != 0)  // a power of two
    throw InvalidModel(text(called(), ": its data must begin at a multiple of ", element_bytes, " bytes."));
  view.dtype = dtype;
  view.shape = dims;
  view.data = static_cast<const std::byte*>(t.data);
  return {view.data, bytes};
}

runtime::Session& states_of(hetnn_executable* executable, hetnn_session* session) {
  if (session) return *session->states;
  require(executable, "executable");
  return executable->runtime.own_session();
}

void read_state(hetnn_executable* executable, hetnn_session* session, const char* name, hetnn_tensor* value) {
  require(name, "name");
  taken(value, kFirstTensor_bytes, "hetnn_tensor");
  const Tensor found = states_of(executable, session).read(name);
  Made made(found.dtype(), found.shape());
  if (found.bytes() > 0) std::memcpy(made.data(), found.data(), found.span().size());
  made.hand_over(value);
}

void write_state(hetnn_executable* executable, hetnn_session* session, const char* name, const hetnn_tensor* value) {
  require(name, "name");
  ops::View view;
  check(value, false, 0, nullptr, view);
  states_of(executable, session).write(name, view);
}

// The i-th struct of an array whose structs are as large as the caller says.
template <typename T>
T* element(T* first, size_t index) {
  if (index == 0) return first;
  require(first, "an array of tensors");
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(first) + index * first->size);
}

// What becomes of the caller's dims: they outlive the run, or are copied.
enum class Dims : uint8_t { stay, kept };

// The tensors of one run, checked for themselves; all that is kept of them but values lies in `memory`.
class Tensors final : public ops::Results {
 public:
  Tensors(const hetnn_executable& executable, const hetnn_tensor* inputs, size_t input_count,
          const hetnn_tensor* outputs, size_t output_count, std::pmr::memory_resource& memory, Dims dims)
      : ports_(executable.outputs), inputs_(&memory), outputs_(&memory) {
    if (input_count > 0) require(inputs, "inputs");
    if (output_count > 0) require(outputs, "outputs");
    if (output_count != ports_.size())
      throw InvalidModel(
          text("the model gives ", counted(ports_.size(), "output"), "; room was given for ", output_count, "."));
    input_count = std::min(input_count, executable.inputs.size() + 1);  // one too many is too many as well
    std::pmr::vector<runtime::Memory> all(&memory);                     // what is read, then what is written
    inputs_.reserve(input_count);
    outputs_.reserve(output_count);
    all.reserve(input_count + output_count);
    std::pmr::memory_resource* const kept = dims == Dims::kept ? &memory : nullptr;
    for (size_t k = 0; k < input_count; ++k)
      all.push_back(check(element(inputs, k), false, k, kept, inputs_.emplace_back()));
    for (size_t k = 0; k < output_count; ++k)
      all.push_back(check(element(outputs, k), true, k, kept, outputs_.emplace_back().given));
    const std::span<const runtime::Memory> memories = all;
    runtime::refuse_overlap(memories.subspan(input_count), memories.first(input_count));
  }

  std::byte* allocate(size_t index, DType dtype, std::span<const int64_t> shape) override {
    auto& [given, made] = outputs_[index];
    if (!given.data) {
      if (!made) made.emplace(dtype, shape);
      return made->data();
    }
    if (given.dtype != dtype || !std::ranges::equal(given.shape, shape)) {
      const auto dims = [](std::span<const int64_t> all) { return to_string(Shape(all.begin(), all.end())); };
      throw InvalidModel(text("output '", ports_[index].name, "' is ", dtype_name(dtype), dims(shape),
                              "; room was given for ", dtype_name(given.dtype), dims(given.shape), "."));
    }
    return const_cast<std::byte*>(given.data);
  }

  std::span<const ops::View> inputs() const { return inputs_; }
  void run(hetnn_executable& executable, hetnn_session* session, hetnn_tensor* outputs, const Stop* stop) {
    executable.runtime.run(inputs_, *this, {.session = session ? session->states.get() : nullptr, .stop = stop});
    for (size_t k = 0; k < outputs_.size(); ++k) {
      if (outputs_[k].made) outputs_[k].made->hand_over(element(outputs, k));
    }
  }

 private:
  struct Output {
    ops::View given = {};  // without data: the run makes it
    std::optional<Made> made = {};
  };

  const std::vector<Port>& ports_;
  std::pmr::vector<ops::View> inputs_;
  std::pmr::vector<Output> outputs_;
};

std::optional<Stop::Clock::time_point> deadline_of(const hetnn_run_options& options) {
  if (options.timeout_us < 0) throw InvalidModel("hetnn_run_options: timeout_us must be 0 or more.");
  if (options.timeout_us == 0) return std::nullopt;
  constexpr int64_t kCentury_us = int64_t{100} * 365 * 24 * 3600 * 1000000;
  return Stop::Clock::now() + std::chrono::microseconds(std::min(options.timeout_us, kCentury_us));
}

}  // namespace
}  // namespace hetnn::capi

// Shared by the run and by who waits for it.
struct hetnn_run_handle {
  hetnn_executable& executable;
  hetnn_session* session;
  hetnn_tensor* outputs;
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory;
  hetnn::capi::Tensors tensors;
  hetnn_run_options options;
  hetnn::Stop stop;
  const int forks = hetnn::forks();

  std::mutex mutex = {};
  std::condition_variable ended = {};
  bool done = false;
  hetnn_status status = HETNN_OK;
  std::string message = {};
  std::shared_ptr<hetnn_run_handle> self = nullptr;  // of who waits

  void run() {
    const hetnn_status result = hetnn::capi::guard([&] { tensors.run(executable, session, outputs, &stop); });
    const char* text = result == HETNN_OK ? "" : hetnn_error_message();
    if (options.callback) options.callback(options.user, result, text);
    const std::lock_guard lock(mutex);
    status = result;
    message = text;
    done = true;
    ended.notify_all();
  }
};

using hetnn::capi::guard;
using hetnn::capi::remember;
using hetnn::capi::require;

hetnn_status hetnn_run(hetnn_executable* executable, hetnn_session* session, const hetnn_tensor* inputs,
                       size_t input_count, hetnn_tensor* outputs, size_t output_count) noexcept {
  return guard([&] {
    require(executable, "executable");
    std::array<std::byte, 1024> room;
    std::pmr::monotonic_buffer_resource memory(room.data(), room.size());
    hetnn::capi::Tensors(*executable, inputs, input_count, outputs, output_count, memory, hetnn::capi::Dims::stay)
        .run(*executable, session, outputs, nullptr);
  });
}

hetnn_status hetnn_state_read(hetnn_executable* executable, hetnn_session* session, const char* name,
                              hetnn_tensor* value) noexcept {
  return guard([&] { hetnn::capi::read_state(executable, session, name, value); });
}

hetnn_status hetnn_state_write(hetnn_executable* executable, hetnn_session* session, const char* name,
                               const hetnn_tensor* value) noexcept {
  return guard([&] { hetnn::capi::write_state(executable, session, name, value); });
}

void hetnn_tensor_free(hetnn_tensor* tensor) noexcept {
  if (!tensor || !tensor->data) return;
  hetnn::capi::Made::release(const_cast<int64_t*>(tensor->dims));
  tensor->data = nullptr;
  tensor->dims = nullptr;
}

hetnn_status hetnn_run_async(hetnn_executable* executable, hetnn_session* session, const hetnn_tensor* inputs,
                             size_t input_count, hetnn_tensor* outputs, size_t output_count,
                             const hetnn_run_options* options, hetnn_run_handle** handle) noexcept {
  return guard([&] {
    require(executable, "executable");
    const hetnn_run_options taken =
        options ? hetnn::capi::taken(options, hetnn::capi::kFirstRunOptions_bytes, "hetnn_run_options")
                : hetnn_run_options{};
    auto memory = std::make_unique<std::pmr::monotonic_buffer_resource>();
    std::pmr::monotonic_buffer_resource& kept = *memory;
    std::shared_ptr<hetnn_run_handle> run(
        new hetnn_run_handle{.executable = *executable,
                             .session = session,
                             .outputs = outputs,
                             .memory = std::move(memory),
                             .tensors = hetnn::capi::Tensors(*executable, inputs, input_count, outputs, output_count,
                                                             kept, hetnn::capi::Dims::kept),
                             .options = taken,
                             .stop = hetnn::Stop(hetnn::capi::deadline_of(taken))});
    executable->runtime.prepare(run->tensors.inputs(), run->tensors);
    hetnn::run_in_background([run] { run->run(); });
    if (!handle) return;
    run->self = run;
    *handle = run.get();
  });
}

hetnn_status hetnn_wait(hetnn_run_handle* handle) noexcept {
  if (!handle) return remember(HETNN_INVALID_MODEL, "handle is null. Pass one that hetnn_run_async gave.");
  if (handle->forks != hetnn::forks())
    return remember(HETNN_UNAVAILABLE,
                    "the run was begun before the fork, by threads that this process does not have.");
  const std::shared_ptr<hetnn_run_handle> run = std::move(handle->self);
  std::unique_lock lock(run->mutex);
  run->ended.wait(lock, [&] { return run->done; });
  return run->status == HETNN_OK ? HETNN_OK : remember(run->status, run->message.c_str());
}

hetnn_status hetnn_cancel(hetnn_run_handle* handle) noexcept {
  if (!handle) return remember(HETNN_INVALID_MODEL, "handle is null. Pass one that hetnn_run_async gave.");
  handle->stop.request();
  return HETNN_OK;
}
