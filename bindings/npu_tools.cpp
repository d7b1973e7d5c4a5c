// The NPU tools: data sheets, topologies on the timing model, allocation, disassembly.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bindings/interrupt.h"
#include "hetnn/backends/schedules.h"
#include "hetnn/base/error.h"
#include "hetnn/memory/fit.h"
#include "hetnn/memory/problem.h"
#include "hetnn/memory/validate.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/isa.h"
#include "hetnn/npu/layer_times.h"
#include "hetnn/npu/spec.h"
#include "hetnn/npu/timing.h"
#include "hetnn/program/pack.h"

namespace py = pybind11;

namespace hetnn {
namespace {

using Clock = std::chrono::steady_clock;

py::dict simulate_topology(const std::string& spec_json, const std::string& csv, const std::string& name,
                           const std::string& dataflow, double words_per_cycle) {
  npu::Spec spec = npu::parse_spec(spec_json, name);
  if (!dataflow.empty()) spec.mac.dataflow = npu::dataflow_from_name(dataflow);
  const auto begin = Clock::now();
  py::list layers;
  int64_t total = 0;
  std::vector<npu::LayerTiming> timed;
  for (const npu::TopologyLayer& layer : npu::read_topology(csv, name))
    timed.push_back(npu::time_layer(spec, layer, words_per_cycle));
  const double wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  for (const npu::LayerTiming& t : timed) {
    layers.append(py::dict(py::arg("name") = t.name, py::arg("compute_cycles") = t.compute_cycles,
                           py::arg("stall_cycles") = t.stall_cycles, py::arg("total_cycles") = t.total_cycles,
                           py::arg("macs") = t.macs, py::arg("utilization") = t.utilization));
    if (__builtin_add_overflow(total, t.total_cycles, &total))
      throw InvalidModel(text(name, ": its layers take more than 2^63 cycles together. Leave some out."));
  }
  return py::dict(py::arg("layers") = layers, py::arg("total_cycles") = total, py::arg("wall_ms") = wall_ms);
}

py::dict allocate(const std::vector<std::tuple<std::string, int64_t, int64_t, int64_t>>& rows, int64_t capacity,
                  double seconds, bool heuristic_only) {
  std::vector<memory::Buffer> buffers;
  buffers.reserve(rows.size());
  for (const auto& [id, lower, upper, size] : rows) buffers.push_back({lower, upper, size});
  const auto begin = Clock::now();
  memory::FitResult result;
  {
    const LongCall call;
    result = memory::fit(buffers, capacity, {.seconds = seconds, .heuristic_only = heuristic_only});
  }
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  py::dict offsets;
  for (size_t k = 0; k < rows.size(); ++k) offsets[py::str(std::get<0>(rows[k]))] = result.fit.offsets[k];
  return py::dict(py::arg("feasible") = result.feasible, py::arg("peak") = result.fit.peak_bytes,
                  py::arg("lower_bound") = result.lower_bound_bytes, py::arg("offsets") = offsets,
                  py::arg("seconds") = took, py::arg("method") = result.method,
                  py::arg("proven_infeasible") = result.proven_infeasible);
}

// Calls f(subprogram, code, variant) for every command stream of a .hetnn file; those of bodies come once, as they
// stand, and say whose they are.
template <typename F>
void each_stream(const program::Program& program, F f) {
  const auto each = [&](const program::Program& of, const std::string& prefix) {
    for (program::Subprogram subprogram : of.subprograms) {
      if (subprogram.code.kind != "npu") continue;
      subprogram.name.insert(0, prefix);
      const npu::Code code =
          npu::read_code(subprogram.code.as_text(npu::kCodeVersion, subprogram.name), subprogram.name);
      for (const npu::Variant& variant : code.variants) f(subprogram, code, variant);
    }
  };
  each(program, "");
  for (size_t k = 0; k < program.bodies.size(); ++k) each(program.bodies[k], text("body ", k, ": "));
}

std::vector<uint64_t> words_of(const program::Program& program, const npu::Variant& variant) {
  std::vector<uint64_t> out(static_cast<size_t>(variant.word_count));
  const auto bytes = program.weights.at(variant.words_offset_bytes, variant.word_count * 8);
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

py::list command_streams(const std::string& path) {
  const program::Program program = program::read_program(path, "'" + path + "'");
  py::list out;
  each_stream(program, [&](const auto& subprogram, const auto&, const auto& variant) {
    const std::vector<uint64_t> words = words_of(program, variant);
    py::list layers;  // [layer, words] after [layer, words]
    for (const npu::Run& run : variant.runs)
      layers.append(py::make_tuple(variant.layers[static_cast<size_t>(run.layer)].node, run.words));
    out.append(py::dict(py::arg("name") = subprogram.name, py::arg("device") = subprogram.device,
                        py::arg("bindings") = variant.bindings, py::arg("words") = words.size(),
                        py::arg("text") = npu::disassemble(words), py::arg("layers") = layers));
  });
  return out;
}

// Bodies' schedules are not given back, so they are left out.
std::string schedules(const std::string& path) {
  const program::Program program = program::read_program(path, "'" + path + "'");
  std::vector<backends::ScheduleSection> sections;
  for (const program::Subprogram& subprogram : program.subprograms) {
    if (subprogram.code.kind != "npu") continue;
    const npu::Code code = npu::read_code(subprogram.code.as_text(npu::kCodeVersion, subprogram.name), subprogram.name);
    for (const npu::Variant& variant : code.variants)
      sections.push_back({subprogram.name, variant.bindings, variant.schedule});
  }
  return backends::write_sections(sections);
}

// What an engine works on: engine, instruction, layer, first cycle, the cycle behind the last, and that in which it is
// finished: what is moved arrives when the engine may be at the next transfer.
py::tuple work_of(const npu::Spec& spec, const npu::Clock& clock, const npu::Instruction& instruction,
                  const std::string& layer) {
  const npu::Engine engine = npu::engine_of(instruction);
  const npu::Cost cost = npu::cost_of(spec, instruction);
  const int64_t end = clock.free_at_cycles(engine);
  return py::make_tuple(npu::engine_name(engine),
                        npu::instruction_table()[static_cast<size_t>(npu::opcode_of(instruction))].mnemonic, layer,
                        end - cost.cycles, end, end + cost.latency_cycles);
}

// The layers of every command stream, and with `timeline` what each engine does when.
py::dict simulate_model(const std::string& path, bool timeline) {
  const program::Program program = program::read_program(path, "'" + path + "'");
  py::list subgraphs;
  int64_t total = 0, bound = 0;
  double seconds = 0;
  each_stream(program, [&](const auto& subprogram, const auto& code, const auto& variant) {
    const npu::Spec spec = npu::parse_spec(code.spec_json, subprogram.device);
    py::list works;
    npu::OnInstruction note;
    if (timeline) {
      note = [&](const npu::Clock& clock, const npu::Instruction& instruction, int64_t layer) {
        if (npu::engine_of(instruction) != npu::Engine::none)
          works.append(work_of(spec, clock, instruction, variant.layers.at(static_cast<size_t>(layer)).node));
      };
    }
    const npu::LayerTimes times = npu::time_layers(spec, words_of(program, variant), variant, note);
    py::list layers;
    for (size_t k = 0; k < times.layers.size(); ++k) {
      const npu::Layer& layer = variant.layers[k];
      const npu::LayerTime& use = times.layers[k];
      layers.append(py::dict(
          py::arg("name") = layer.node, py::arg("node") = layer.node, py::arg("op") = layer.op,
          py::arg("compute_cycles") = use.compute_cycles, py::arg("stall_cycles") = use.stall_cycles,
          py::arg("total_cycles") = use.cycles, py::arg("memory_cycles") = use.memory_cycles,
          py::arg("macs") = layer.macs, py::arg("utilization") = use.utilization,
          py::arg("dma_bytes") = layer.dma_bytes, py::arg("weight_bytes") = layer.weight_bytes,
          py::arg("sram_peak_bytes") = use.sram_peak_bytes, py::arg("tile") = layer.tile,
          py::arg("cascade") = layer.cascade < 0 ? py::object(py::none()) : py::object(py::int_(layer.cascade)),
          py::arg("stalls") = py::dict(py::arg("dma") = use.stall_cycles), py::arg("energy_nj") = use.energy_nj));
    }
    total += variant.cycles;
    seconds += static_cast<double>(variant.cycles) / spec.clock_hz;
    py::dict subgraph(py::arg("name") = subprogram.name, py::arg("device") = subprogram.device,
                      py::arg("bindings") = variant.bindings, py::arg("layers") = layers,
                      py::arg("total_cycles") = variant.cycles,
                      py::arg("lower_bound_cycles") = variant.lower_bound_cycles);
    if (timeline) {
      subgraph["clock_hz"] = spec.clock_hz;
      subgraph["timeline"] = works;
    }
    subgraphs.append(subgraph);
    bound += variant.lower_bound_cycles;
  });
  return py::dict(py::arg("subgraphs") = subgraphs, py::arg("total_cycles") = total,
                  py::arg("lower_bound_cycles") = bound, py::arg("seconds") = seconds);
}

}  // namespace

void bind_npu_tools(py::module_& m) {
  m.def(
      "builtin_spec",
      [](const std::string& name) -> py::object {
        const auto spec = npu::builtin_spec(name);
        return spec ? py::object(py::str(npu::spec_to_json(*spec))) : py::none();
      },
      py::arg("name"), "The data sheet of a member of a built-in family as JSON text, else None.");
  m.def(
      "check_spec",
      [](const std::string& json, const std::string& where) { return npu::spec_to_json(npu::parse_spec(json, where)); },
      py::arg("json"), py::arg("where"),
      "Reads a data sheet strictly and writes it back. InvalidModel names the path.");
  m.def("figures_without_source", &npu::figures_without_source, py::arg("json"),
        "Paths of figures that no provenance covers.");
  m.def("isa_manual", &npu::isa_manual, "The instruction set as a Markdown page.");
  m.def("simulate_topology", &simulate_topology, py::arg("spec"), py::arg("csv"), py::arg("name"),
        py::arg("dataflow") = "", py::arg("words_per_cycle") = 0.0, "Times the layers of a topology.");
  m.def("allocate", &allocate, py::arg("rows"), py::arg("capacity"), py::arg("seconds") = 10.0,
        py::arg("heuristic_only") = false, "Offsets for buffers (id, lower, upper, size) within a capacity.");
  m.def("command_streams", &command_streams, py::arg("path"), "The command streams of a .hetnn file, as text.");
  m.def("schedules", &schedules, py::arg("path"),
        "The schedules of a .hetnn file's accelerator subgraphs, as the option `schedule` takes them back.");
  m.def("simulate_model", &simulate_model, py::arg("path"), py::arg("timeline") = false,
        "The layers of every command stream of a .hetnn file, timed; with `timeline` also what each engine works on, "
        "from "
        "which cycle to which: engine, instruction, layer, begin, end, finished.");
  m.def(
      "disassemble", [](const std::vector<uint64_t>& words) { return npu::disassemble(words); }, py::arg("words"),
      "Words as text.");
  m.def("assemble", &npu::assemble, py::arg("source"), "Text as words.");
}

}  // namespace hetnn
