// A device written in C as an executor: its ports are dense, and as the model has them unless it takes images as the
// program keeps them.
#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/capi/guard.h"
#include "hetnn/capi/handles.h"
#include "hetnn/runtime/executor.h"
#include "hetnn/runtime/layout_copy.h"

// The event of a visit that was started.
struct hetnn_event {
  hetnn::runtime::Event* event = nullptr;
};

namespace hetnn::capi {
namespace {

using runtime::BoundBuffer;

constexpr size_t kFirstDevice_bytes = offsetof(hetnn_device, times) + sizeof(void (*)());

// Throws what a function of the device failed with.
void succeed(hetnn_status status) {
  if (status != HETNN_OK) raise(status, hetnn_error_message());
}

// Ports with the rows that point into them.
struct Rows {
  std::vector<Port> ports;
  std::vector<hetnn_port> rows;

  void add(Port port) { ports.push_back(std::move(port)); }
  void point() {
    for (const Port& port : ports) rows.push_back(port.row());
  }
};

// The port of a buffer; of an image that the device takes as it lies, with channels last.
Port port_of(const program::Buffer& buffer, Port port, bool images_last) {
  if (images_last && buffer.layout == Layout::nhwc)
    std::rotate(port.dims.begin() + 1, port.dims.begin() + 2, port.dims.end());
  return port;
}

// A visit's tensors of one side, in or out; those whose memory is not dense get memory of their own.
class Side {
 public:
  Side(const Rows& rows, const std::vector<int32_t>& ids, const std::vector<BoundBuffer>& buffers, bool images_last)
      : ids_(ids), buffers_(buffers), images_last_(images_last) {
    for (size_t k = 0; k < ids.size(); ++k) {
      const hetnn_port& row = rows.rows[k];
      tensors_.push_back({sizeof(hetnn_tensor), nullptr, row.dtype, row.rank, row.dims});
      const BoundBuffer& buffer = at(k);
      int64_t dense_bytes = dtype_bytes(buffer.view.dtype);
      for (const int64_t dim : buffer.shape) dense_bytes *= dim;
      dense_.emplace_back();
      if (!is_as_inside(k)) dense_.back().emplace(static_cast<size_t>(dense_bytes));
    }
  }

  const hetnn_tensor* tensors() const { return tensors_.data(); }
  int64_t bytes() const {
    int64_t out = 0;
    for (const auto& buffer : dense_) out += buffer ? static_cast<int64_t>(buffer->size_bytes()) : 0;
    return out;
  }
  void point(runtime::Addresses addresses) {
    for (size_t k = 0; k < ids_.size(); ++k) tensors_[k].data = dense_[k] ? dense_[k]->data() : lies(k, addresses);
  }
  void copy_in(runtime::Addresses addresses) const {
    for (size_t k = 0; k < ids_.size(); ++k) {
      if (dense_[k]) copy(k, lies(k, addresses), outside(k), dense_[k]->data(), inside(k));
    }
  }
  void copy_out(runtime::Addresses addresses) const {
    for (size_t k = 0; k < ids_.size(); ++k) {
      if (dense_[k]) copy(k, dense_[k]->data(), inside(k), lies(k, addresses), outside(k));
    }
  }

 private:
  const BoundBuffer& at(size_t k) const { return buffers_[static_cast<size_t>(ids_[k])]; }
  std::byte* lies(size_t k, runtime::Addresses addresses) const { return addresses[static_cast<size_t>(ids_[k])]; }
  runtime::MapLayout outside(size_t k) const { return {at(k).view.layout, at(k).view.pitch_elems}; }
  runtime::MapLayout inside(size_t k) const {
    const bool stays = images_last_ && at(k).view.layout == Layout::nhwc;
    return {stays ? Layout::nhwc : Layout::plain, at(k).shape.size() == 4 ? at(k).shape[1] : 0};
  }
  bool is_as_inside(size_t k) const {
    const runtime::MapLayout here = outside(k), there = inside(k);
    return here.layout == there.layout && (here.layout == Layout::plain || here.pitch_elems == there.pitch_elems);
  }
  void copy(size_t k, const std::byte* from, runtime::MapLayout from_layout, std::byte* to,
            runtime::MapLayout to_layout) const {
    runtime::copy_value(at(k).view.dtype, at(k).shape, from, from_layout, to, to_layout);
  }

  const std::vector<int32_t>& ids_;
  const std::vector<BoundBuffer>& buffers_;
  std::vector<hetnn_tensor> tensors_;
  std::vector<std::optional<AlignedBuffer>> dense_;
  const bool images_last_;
};

class PluginVisit final : public runtime::Visit {
 public:
  PluginVisit(const hetnn_device& device, void* loaded, const Rows& inputs, const Rows& outputs,
              const program::Subprogram& subprogram, const std::vector<BoundBuffer>& buffers)
      : device_(device),
        in_(inputs, subprogram.inputs, buffers, device.images_last != 0),
        out_(outputs, subprogram.outputs, buffers, device.images_last != 0) {
    succeed(device.open(loaded, inputs.rows.data(), outputs.rows.data(), &visit_));
  }
  ~PluginVisit() override {
    // The device may still read inputs and set the event.
    if (running_) {
      try {
        event_.event->wait();
      } catch (const Error&) {  // the run has failed already
      }
    }
    device_.close(visit_);
  }

  int64_t bytes() const override { return in_.bytes() + out_.bytes(); }
  void upload(runtime::Addresses addresses) override {
    in_.point(addresses);
    in_.copy_in(addresses);
    succeed(device_.upload(visit_, in_.tensors()));
  }
  void start(const runtime::Launch&, runtime::Event& done) override {
    event_.event = &done;
    running_ = true;
    const hetnn_status status = device_.start(visit_, &event_);
    if (status == HETNN_OK) return;
    running_ = false;
    succeed(status);
  }
  void download(runtime::Addresses addresses) override {
    running_ = false;
    out_.point(addresses);
    succeed(device_.download(visit_, out_.tensors()));
    out_.copy_out(addresses);
  }
  runtime::DeviceTimes times() const override {
    runtime::DeviceTimes out;
    if (device_.times) device_.times(visit_, &out.cycles, &out.simulated_us);
    return out;
  }

 private:
  const hetnn_device& device_;
  Side in_, out_;
  void* visit_ = nullptr;
  hetnn_event event_;
  bool running_ = false;
};

class PluginBound final : public runtime::BoundCode {
 public:
  PluginBound(const hetnn_device& device, void* loaded, const program::Program& program,
              const program::Subprogram& subprogram, const std::vector<BoundBuffer>& buffers)
      : device_(device), loaded_(loaded), subprogram_(subprogram), buffers_(buffers) {
    const auto add = [&](const std::vector<int32_t>& ids, Rows& to) {
      for (const int32_t id : ids) {
        const program::Buffer& buffer = program.buffers[static_cast<size_t>(id)];
        if (buffer.packed) {
          throw InvalidModel(text("subprogram '", subprogram.name, "' reads the packed weight '", buffer.name,
                                  "'. Compile the model again."));
        }
        Port bound{.name = buffer.name, .dims = buffers[static_cast<size_t>(id)].shape, .dtype = buffer.dtype};
        to.add(port_of(buffer, std::move(bound), device.images_last != 0));
      }
      to.point();
    };
    add(subprogram.inputs, inputs_);
    add(subprogram.outputs, outputs_);
  }
  std::unique_ptr<runtime::Visit> open(std::span<const int64_t>) const override {
    return std::make_unique<PluginVisit>(device_, loaded_, inputs_, outputs_, subprogram_, buffers_);
  }

 private:
  const hetnn_device& device_;
  void* const loaded_;
  const program::Subprogram& subprogram_;
  const std::vector<BoundBuffer>& buffers_;
  Rows inputs_, outputs_;
};

class Plugin final : public runtime::Executor {
 public:
  Plugin(const hetnn_device& device, const runtime::Load& load)
      : device_(device), program_(load.program), subprogram_(load.subprogram) {
    const auto add = [&](const std::vector<int32_t>& ids, Rows& to) {
      for (const int32_t id : ids) {
        const program::Buffer& buffer = program_.buffers[static_cast<size_t>(id)];
        to.add(port_of(buffer, capi::port_of(buffer.name, buffer), device_.images_last != 0));
      }
      to.point();
    };
    add(subprogram_.inputs, inputs_);
    add(subprogram_.outputs, outputs_);
    const program::Code& code = load.code;
    const hetnn_code given = {sizeof(hetnn_code),  subprogram_.name.c_str(), subprogram_.device.c_str(),
                              code.version,        code.bytes.data(),        code.bytes.size(),
                              inputs_.rows.data(), inputs_.rows.size(),      outputs_.rows.data(),
                              outputs_.rows.size()};
    succeed(device_.load(device_.user, &given, &loaded_));
  }
  ~Plugin() override { device_.unload(loaded_); }
  std::vector<runtime::Moment> moments() const override { return {{subprogram_.inputs, subprogram_.outputs}}; }
  std::unique_ptr<const runtime::BoundCode> bind(const runtime::Sizes& sizes) const override {
    return std::make_unique<PluginBound>(device_, loaded_, program_, subprogram_, sizes.buffers);
  }

 private:
  const hetnn_device device_;
  const program::Program& program_;
  const program::Subprogram& subprogram_;
  Rows inputs_, outputs_;
  void* loaded_ = nullptr;
};

}  // namespace
}  // namespace hetnn::capi

using hetnn::capi::guard;
using hetnn::capi::require;

hetnn_status hetnn_register_device(const hetnn_device* device) noexcept {
  return guard([&] {
    const hetnn_device taken = hetnn::capi::taken(device, hetnn::capi::kFirstDevice_bytes, "hetnn_device");
    require(taken.kind, "hetnn_device.kind");
    if (!taken.load || !taken.unload || !taken.open || !taken.close || !taken.upload || !taken.start || !taken.download)
      throw hetnn::InvalidModel("hetnn_device: only `times` may be null. Give every other function.");
    hetnn::runtime::register_executor(taken.kind, [taken](const hetnn::runtime::Load& load) {
      return std::unique_ptr<const hetnn::runtime::Executor>(std::make_unique<hetnn::capi::Plugin>(taken, load));
    });
  });
}

void hetnn_event_set(hetnn_event* done, hetnn_status status, const char* message) noexcept {
  if (!done || !done->event) return;
  hetnn::runtime::Event& event = *done->event;
  if (status == HETNN_OK) return event.set();
  event.fail([&]() -> std::exception_ptr {
    try {
      hetnn::capi::raise(status, message ? message : "");
    } catch (...) {
      return std::current_exception();
    }
  }());
}
