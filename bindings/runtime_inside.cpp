// What stands in a program beside what runs it: kernels, layers by a device's own clock, values inside.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>

#include "bindings/views.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/runtime/device_layers.h"
#include "hetnn/runtime/executable.h"
#include "hetnn/runtime/exposed.h"

namespace py = pybind11;

namespace hetnn {
namespace {

using runtime::Executable;

py::list kernel_rows(const Executable& executable) {
  const auto program = executable.program();
  py::list rows;
  for (const auto& [node, kernel] : runtime::kernels_of(*program)) rows.append(py::make_tuple(node, kernel));
  return rows;
}

// What each layer takes on the device's own clock, from the code that these inputs run.
py::list layers(const Executable& executable, const std::vector<py::array>& inputs) {
  const auto program = executable.program();
  py::list rows;
  for (const runtime::DeviceLayers& part : runtime::device_layers(*program, executable.bindings_of(views_of(inputs)))) {
    py::list of_layers, spans;
    for (size_t k = 0; k < part.times.layers.size(); ++k) {
      const npu::Layer& layer = part.variant.layers[k];
      const npu::LayerTime& time = part.times.layers[k];
      of_layers.append(
          py::dict(py::arg("node") = layer.node, py::arg("op") = layer.op, py::arg("cycles") = time.cycles,
                   py::arg("compute_cycles") = time.compute_cycles, py::arg("memory_cycles") = time.memory_cycles,
                   py::arg("stall_cycles") = time.stall_cycles, py::arg("macs") = layer.macs,
                   py::arg("utilization") = time.utilization, py::arg("dma_bytes") = layer.dma_bytes,
                   py::arg("weight_bytes") = layer.weight_bytes, py::arg("sram_peak_bytes") = time.sram_peak_bytes,
                   py::arg("energy_nj") = time.energy_nj, py::arg("tile") = layer.tile));
    }
    for (const npu::LayerSpan& span : part.times.spans)
      spans.append(py::make_tuple(span.layer, span.begin_cycles, span.end_cycles, span.stall_cycles));
    rows.append(py::dict(py::arg("subprogram") = part.subprogram, py::arg("clock_hz") = part.clock_hz,
                         py::arg("launch_us") = part.launch_us, py::arg("cycles") = part.variant.cycles,
                         py::arg("layers") = of_layers, py::arg("spans") = spans));
  }
  return rows;
}

std::unique_ptr<Executable> exposed(const Executable& executable, const std::vector<std::string>& names) {
  return std::make_unique<Executable>(runtime::exposed(*executable.program(), names), executable.threads(),
                                      "the executable");
}

py::list quants(const Executable& executable) {
  const auto program = executable.program();
  py::list out;
  for (const program::Port& port : program->outputs) {
    const auto& quant = program->buffers[static_cast<size_t>(port.buffer)].quant;
    out.append(quant ? py::object(py::dict(py::arg("scales") = quant->scales,
                                           py::arg("zero_points") = quant->zero_points, py::arg("axis") = quant->axis))
                     : py::none());
  }
  return out;
}

}  // namespace

void bind_runtime_inside(py::module_& m) {
  m.def("kernels", &kernel_rows, py::arg("executable"),
        "(node, kernel) of every command of the general processor, in order.");
  m.def("layers", &layers, py::arg("executable"), py::arg("inputs"),
        "A row an accelerator subprogram that has code for the sizes of these inputs: subprogram, clock_hz, launch_us, "
        "cycles, layers, and spans: layer, begin, end and stalled cycles.");
  m.def(
      "exposable", [](const Executable& executable) { return runtime::exposable(*executable.program()); },
      py::arg("executable"), "Names of the values that lie in a buffer of their own in a run.");
  m.def("exposed", &exposed, py::arg("executable"), py::arg("names"),
        "An executable that returns these values too, behind its own outputs, and is the same otherwise.");
  m.def("quants", &quants, py::arg("executable"),
        "Of every output, None or what its integers stand for: scales, zero_points, axis.");
}

}  // namespace hetnn
