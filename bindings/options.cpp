// _core's tables: the options of compiling, and the kinds of JSON that hetnn reads, for signatures, commands and docs.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "hetnn/backends/cpu/roofline.h"
#include "hetnn/base/json_limits.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/spec.h"
#include "hetnn/plan/partition/problem/problem.h"
#include "hetnn/plan/partition/strategies/plan_json.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/pack.h"
#include "hetnn/report/report.h"

namespace py = pybind11;

namespace hetnn {
namespace {

py::list option_table() {
  py::list rows;
  for (const OptionRow& row : option_rows()) {
    rows.append(py::dict(py::arg("name") = row.name, py::arg("flag") = row.flag, py::arg("doc") = row.doc,
                         py::arg("schema") = row.schema));
  }
  return rows;
}

py::list json_formats() {
  py::list rows;
  for (const JsonFormat* format : kJsonFormats) {
    rows.append(py::dict(py::arg("name") = format->name, py::arg("max_depth") = format->max_depth,
                         py::arg("max_values") = format->max_values,
                         py::arg("max_text_bytes") = format->max_text_bytes));
  }
  return rows;
}

std::string json_schema(const std::string& format, const std::string& strategy) {
  if (format == kNpuSheetJson.name) return npu::spec_schema();
  if (format == kCpuSheetJson.name) return backends::cpu::speeds_schema();
  if (format == kTargetJson.name) return target_schema();
  if (format == kOptionsJson.name) return options_schema();
  if (format == kStrategyJson.name) return plan::plan_options_schema(strategy);
  if (format == kProblemJson.name) return plan::problem_schema();
  if (format == kProgramJson.name) return program::structure_schema();
  if (format == kCpuCodeJson.name) return program::cpu_code_schema();
  if (format == kNpuCodeJson.name) return npu::code_schema();
  if (format == kReportJson.name) return report::report_schema();
  throw InvalidModel(text("there is no format '", format, "'; json_formats() lists them."));
}

}  // namespace

void bind_options(py::module_& m) {
  m.def(
      "machine_of",
      [](const std::string& sheet) -> py::object {
        return py::cast(backends::cpu::parse_speeds(sheet, "the data sheet of a CPU").machine);
      },
      // The class is of the module _runtime, which need not be there yet when this is said.
      py::arg("sheet"), "The processor (_runtime.Machine) of a measured data sheet, as JSON.");
  m.def("compile_options", &option_table,
        "The options of compiling, a row each: name, flag of the commands, doc, and the JSON schema with the default.");
  m.def(
      "read_options", [](const std::string& options) { return options_json(parse_options(options)); },
      py::arg("options"), "Checks options given as JSON text and returns all of them, defaults included.");
  m.def("json_formats", &json_formats, "The kinds of JSON that are read, with their limits.");
  m.def("json_schema", &json_schema, py::arg("format"), py::arg("strategy") = "cost",
        "The JSON schema of a format of json_formats(); of one strategy's options, by its name.");
}

}  // namespace hetnn
