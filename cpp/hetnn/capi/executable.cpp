// Loading, ports and sessions from C.
#include <span>

#include "hetnn/capi/guard.h"
#include "hetnn/capi/handles.h"
#include "hetnn/program/pack.h"

namespace hetnn::capi {
namespace {

constexpr size_t kFirstOptions_bytes = offsetof(hetnn_options, refuse_when_full) + sizeof(int32_t);
constexpr size_t kFirstPort_bytes = offsetof(hetnn_port, dims) + sizeof(const int64_t*);

// From a program or its image.
template <typename From>
void load(From from, const std::string& called, const hetnn_options* given, hetnn_executable** to) {
  const hetnn_options options = given ? taken(given, kFirstOptions_bytes, "hetnn_options") : hetnn_options{};
  if (options.threads < 0 || options.max_concurrent_runs < 0)
    throw InvalidModel("hetnn_options: threads and max_concurrent_runs must be 0 or more.");
  auto made = std::make_unique<hetnn_executable>(std::move(from), options.threads, called);
  made->runtime.limit_runs(options.max_concurrent_runs, options.refuse_when_full != 0);
  *to = made.release();
}

void fill(const std::vector<Port>& ports, const char* what, size_t index, hetnn_port* to) {
  taken(to, kFirstPort_bytes, "hetnn_port");
  if (index >= ports.size())
    throw InvalidModel(text("there is no ", what, " ", index, "; the executable has ", ports.size(), "."));
  give(ports[index].row(), to);
}

}  // namespace

Port port_of(const std::string& name, const program::Buffer& buffer) {
  Port out{.name = name, .dims = {}, .dtype = buffer.dtype};
  for (const Dim& dim : buffer.shape) out.dims.push_back(dim.is_static() ? dim.value() : -1);
  return out;
}

}  // namespace hetnn::capi

using hetnn::capi::guard;
using hetnn::capi::require;

void hetnn_executable::name_ports() {
  const auto program = runtime.program();
  const auto add = [&](const std::vector<hetnn::program::Port>& from, std::vector<hetnn::capi::Port>& to) {
    for (const hetnn::program::Port& port : from)
      to.push_back(hetnn::capi::port_of(port.name, program->buffers[static_cast<size_t>(port.buffer)]));
  };
  add(program->inputs, inputs);
  add(program->outputs, outputs);
}

hetnn_status hetnn_load(const char* path, const hetnn_options* options, hetnn_executable** executable) noexcept {
  return guard([&] {
    require(path, "path");
    require(executable, "executable");
    const std::string called = hetnn::text("'", path, "'");
    hetnn::capi::load(hetnn::program::read_program(path, called), called, options, executable);
  });
}

hetnn_status hetnn_load_memory(const void* data, size_t bytes, const hetnn_options* options,
                               hetnn_executable** executable) noexcept {
  return guard([&] {
    require(data, "data");
    require(executable, "executable");
    const auto* begin = static_cast<const std::byte*>(data);
    auto copy = std::make_shared<const std::vector<std::byte>>(begin, begin + bytes);
    hetnn::capi::load(hetnn::program::Blob(copy, *copy), "the executable", options, executable);
  });
}

void hetnn_free(hetnn_executable* executable) noexcept { delete executable; }

size_t hetnn_input_count(const hetnn_executable* executable) noexcept {
  return executable ? executable->inputs.size() : 0;
}
size_t hetnn_output_count(const hetnn_executable* executable) noexcept {
  return executable ? executable->outputs.size() : 0;
}

hetnn_status hetnn_input(const hetnn_executable* executable, size_t index, hetnn_port* port) noexcept {
  return guard([&] {
    require(executable, "executable");
    hetnn::capi::fill(executable->inputs, "input", index, port);
  });
}
hetnn_status hetnn_output(const hetnn_executable* executable, size_t index, hetnn_port* port) noexcept {
  return guard([&] {
    require(executable, "executable");
    hetnn::capi::fill(executable->outputs, "output", index, port);
  });
}

hetnn_status hetnn_session_new(const hetnn_executable* executable, hetnn_session** session) noexcept {
  return guard([&] {
    require(executable, "executable");
    require(session, "session");
    *session = new hetnn_session{executable->runtime.session()};
  });
}

hetnn_status hetnn_session_reset(hetnn_session* session) noexcept {
  return guard([&] {
    require(session, "session");
    session->states->reset();
  });
}

hetnn_status hetnn_save(hetnn_executable* executable, const char* path) noexcept {
  return guard([&] {
    require(executable, "executable");
    require(path, "path");
    hetnn::program::write_file(path, executable->runtime.image());
  });
}

void hetnn_session_free(hetnn_session* session) noexcept { delete session; }
