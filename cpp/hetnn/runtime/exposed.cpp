// Appends one subprogram of the general processor that copies.
#include "hetnn/runtime/exposed.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "hetnn/base/error.h"
#include "hetnn/program/cpu_code.h"

namespace hetnn::runtime {
namespace {

struct Found {
  int32_t buffer;
  int32_t writer;  // the subprogram that writes it; -1: the caller does
};

// The first buffer of each name that something writes; constants are no values of a run.
std::map<std::string, Found> buffers_by_name(const program::Program& program) {
  std::map<int32_t, int32_t> writer;
  for (const program::Port& port : program.inputs) writer.emplace(port.buffer, -1);
  for (size_t k = 0; k < program.subprograms.size(); ++k) {
    const program::Subprogram& subprogram = program.subprograms[k];
    for (const int32_t id : subprogram.outputs) writer.emplace(id, static_cast<int32_t>(k));
    if (subprogram.code.kind != "cpu") continue;
    const program::CpuCode code = program::read_cpu_code(subprogram.code, subprogram, program, subprogram.name);
    if (code.blocks > 1) continue;  // within it there is but a block of each value
    for (const program::Command& command : code.commands) {
      for (const int32_t id : command.outputs) writer.emplace(id, static_cast<int32_t>(k));
    }
  }
  std::map<std::string, Found> out;
  for (const auto& [id, by] : writer) {
    if (id >= 0) out.emplace(program.buffers[static_cast<size_t>(id)].name, Found{id, by});
  }
  return out;
}

std::string general_processor(const program::Program& program) {
  const auto at = std::ranges::find_if(program.subprograms, [](const auto& s) { return s.code.kind == "cpu"; });
  return at == program.subprograms.end() ? "cpu" : at->device;
}

}  // namespace

std::vector<std::string> exposable(const program::Program& program) {
  std::vector<std::string> out;
  for (const auto& [name, found] : buffers_by_name(program)) out.push_back(name);
  return out;
}

program::Program exposed(const program::Program& program, const std::vector<std::string>& names) {
  const std::map<std::string, Found> buffers = buffers_by_name(program);
  const ops::OpDef& identity = ops::OpTable::global().get(ops::kIdentity);
  program::Program out = program;
  program::Subprogram copies;
  copies.name = text("exposed.", program.subprograms.size());
  copies.device = general_processor(program);
  copies.depends_on.resize(program.subprograms.size());
  std::iota(copies.depends_on.begin(), copies.depends_on.end(), 0);
  program::CpuCode code;
  for (const std::string& name : names) {
    const auto at = buffers.find(name);
    if (at == buffers.end()) throw InvalidModel(text("no buffer of the program holds the value '", name, "'."));
    const auto [from, writer] = at->second;
    program::Buffer copy = program.buffers[static_cast<size_t>(from)];
    // A meaning reads plain memory; from another layout a kernel copies.
    const bool lies_plain = copy.layout == Layout::plain;
    copy.layout = Layout::plain;
    copy.pitch = 0;
    copy.strides.clear();
    copy.place = program::Place::output;
    out.buffers.push_back(std::move(copy));
    const auto id = static_cast<int32_t>(out.buffers.size() - 1);
    out.outputs.push_back({name, id});
    // What stayed within a subprogram leaves it now.
    if (writer >= 0) {
      std::vector<int32_t>& leaving = out.subprograms[static_cast<size_t>(writer)].outputs;
      if (std::ranges::find(leaving, from) == leaving.end()) leaving.push_back(from);
    }
    copies.inputs.push_back(from);
    copies.outputs.push_back(id);
    code.commands.push_back({.op = &identity,
                             .attrs = {},
                             .inputs = {from},
                             .outputs = {id},
                             .steps = {},
                             .variant = lies_plain ? "" : "copy",
                             .options = {},
                             .node = name});
  }
  // What is read twice is an input once.
  std::ranges::sort(copies.inputs);
  copies.inputs.erase(std::unique(copies.inputs.begin(), copies.inputs.end()), copies.inputs.end());
  copies.code = program::write_cpu_code(code);
  if (!code.commands.empty()) out.subprograms.push_back(std::move(copies));
  return out;
}

std::vector<std::pair<std::string, std::string>> kernels_of(const program::Program& program) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const program::Subprogram& subprogram : program.subprograms) {
    if (subprogram.code.kind != "cpu") continue;
    const program::CpuCode code = program::read_cpu_code(subprogram.code, subprogram, program, subprogram.name);
    for (const program::Command& command : code.commands)
      out.emplace_back(command.node, command.variant.empty() ? text("meaning of ", command.op->name) : command.variant);
  }
  return out;
}

}  // namespace hetnn::runtime
