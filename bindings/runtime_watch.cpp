// _runtime.Watch: some of the numbers of many memories, to see whether anybody has written them.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace py = pybind11;

namespace hetnn {
namespace {

class Watch {
 public:
  // Numbers of 4 bytes, evenly spread over each memory.
  Watch(std::vector<py::buffer> memories, size_t numbers) : memories_(std::move(memories)) {
    for (const py::buffer& memory : memories_) {
      const py::buffer_info info = memory.request();
      const auto words = static_cast<size_t>(info.size * info.itemsize) / sizeof(uint32_t);
      const size_t step = std::max<size_t>(1, words / numbers);
      for (size_t at = 0; at < words; at += step)
        places_.push_back(static_cast<const std::byte*>(info.ptr) + at * sizeof(uint32_t));
    }
  }

  py::bytes look() const {
    std::vector<uint32_t> found(places_.size());
    // Behind a run each is in no cache and on a page of its own: many are asked for at once.
    for (size_t k = 0; k < places_.size(); ++k) {
      if (k + kAhead < places_.size()) __builtin_prefetch(places_[k + kAhead]);
      std::memcpy(&found[k], places_[k], sizeof(uint32_t));
    }
    return {reinterpret_cast<const char*>(found.data()), found.size() * sizeof(uint32_t)};
  }

 private:
  static constexpr size_t kAhead = 48;

  std::vector<py::buffer> memories_;  // kept alive
  std::vector<const std::byte*> places_;
};

}  // namespace

void bind_runtime_watch(py::module_& m) {
  py::class_<Watch>(m, "Watch", "Some of the numbers of many memories, to see whether anybody has written them.")
      .def(py::init<std::vector<py::buffer>, size_t>(), py::arg("memories"), py::arg("numbers"),
           "`numbers` of 4 bytes or a few more of each memory, evenly spread; the memories are kept.")
      .def("look", &Watch::look, "The numbers as they are now, as bytes.");
}

}  // namespace hetnn
