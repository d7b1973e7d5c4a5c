// Code of the general processor: kernel launches in order. The cpu backend writes it, the cpu executor reads it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "hetnn/program/program.h"

namespace hetnn::program {

using Param = std::variant<Dim, double, std::string, std::vector<Dim>, std::vector<double>>;
using Params = std::map<std::string, Param, std::less<>>;

/// One kernel launch.
struct Command {
  std::string kernel;
  std::vector<int32_t> inputs;  // buffers
  std::vector<int32_t> outputs;
  Params params;
  std::string node;  // the source node, for traces
  bool operator==(const Command&) const = default;
};

struct CpuCode {
  std::vector<Command> commands;
  bool operator==(const CpuCode&) const = default;
};

/// As bytes of kind "cpu".
Code write_cpu_code(const CpuCode& code);

/// From bytes, checked against the program whose buffers and symbols it names. InvalidModel names `called` and the
/// field.
CpuCode read_cpu_code(const Code& code, const Program& program, const std::string& called);

}  // namespace hetnn::program
