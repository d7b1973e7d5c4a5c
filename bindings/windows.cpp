// Windows and resampling for importers: how many windows there are, and what each entry of an axis gives to each of
// the result.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>

#include "bindings/dims.h"
#include "hetnn/base/error.h"
#include "hetnn/ops/resample.h"
#include "hetnn/ops/window.h"

namespace py = pybind11;

namespace hetnn {
namespace {

template <typename R>
py::array_t<R> matrix(const ops::Shares<R>& shares) {
  const auto columns = static_cast<py::ssize_t>(shares.entries);
  const py::ssize_t rows = columns == 0 ? 0 : static_cast<py::ssize_t>(shares.values.size()) / columns;
  return py::array_t<R>({rows, columns}, shares.values.data());
}

py::array resampled(int64_t size, int64_t goal, double scale, const std::string& mode, const std::string& places,
                    const std::string& rounding, double cubic_coefficient, bool exclude_outside, bool by_scale) {
  const ops::ResampledAxis axis{size, goal, scale, static_cast<double>(goal), 0, 1, by_scale};
  const ops::Resampling how{.mode = mode,
                            .places = places,
                            .rounding = rounding,
                            .exclude_outside = exclude_outside,
                            .cubic_coefficient = cubic_coefficient};
  if (const std::string fault = ops::resampling_fault(how); !fault.empty()) throw InvalidModel("Resize: " + fault);
  if (mode != "nearest") return matrix(ops::resampling_shares(how, axis));
  py::array_t<int64_t> out(static_cast<py::ssize_t>(goal));
  for (int64_t at = 0; at < goal; ++at)
    out.mutable_at(at) =
        std::clamp<int64_t>(ops::resampled_entry(how, axis, at).first, 0, std::max<int64_t>(size - 1, 0));
  return out;
}

}  // namespace

void bind_windows(py::module_& m) {
  m.def(
      "window_count",
      [](const Size& size, int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after,
         bool ceil_mode) {
        return size_of(ops::WindowAxis{kernel, stride, dilation, before, after}.count(dim_of(size), ceil_mode));
      },
      py::arg("size"), py::arg("kernel"), py::arg("stride"), py::arg("dilation"), py::arg("before") = 0,
      py::arg("after") = 0, py::arg("ceil_mode") = false, "How many windows lie over an axis of that size.");
  m.def("resampled", resampled, py::arg("size"), py::arg("goal"), py::arg("scale"), py::arg("mode"), py::arg("places"),
        py::arg("rounding"), py::arg("cubic_coefficient"), py::arg("exclude_outside"), py::arg("by_scale"),
        "What each entry of an axis gives to each of the result, [goal, size], as ONNX says it; of nearest which entry "
        "each of the result is, [goal].");
  m.def(
      "torch_shares",
      [](int64_t size, int64_t goal, double scale, bool align_corners, bool cubic, bool antialias,
         bool single) -> py::array {
        if (antialias) return matrix(ops::antialiased_shares(size, goal, scale, align_corners, cubic));
        if (single) return matrix(ops::cubic_shares<float>(size, goal, scale, align_corners));
        return matrix(ops::cubic_shares<double>(size, goal, scale, align_corners));
      },
      py::arg("size"), py::arg("goal"), py::arg("scale"), py::arg("align_corners"), py::arg("cubic"),
      py::arg("antialias"), py::arg("single"),
      "What each entry of an axis gives to each of the result, [goal, size], rounded to f32 or f64 as torch does; "
      "linear "
      "only with antialias. A scale of 0: the ratio of the sizes.");
}

}  // namespace hetnn
