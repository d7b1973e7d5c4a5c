// Code of the general processor: operator calls in order. The cpu backend writes it, the cpu executor reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetnn/ops/op_def.h"
#include "hetnn/program/program.h"

namespace hetnn::program {

/// An elementwise call fused behind another: it reads the running value, and inputs of the command besides: as many as
/// its operator takes, of a sum (an operator of any number of inputs) one for every coefficient but the first.
/// Conversions, comparisons and choices change the running value's element type, and the last one's is that of the
/// command's first output.
struct Step {
  const ops::OpDef* op = nullptr;
  ops::Attrs attrs;
  int32_t operand = -1;  // position among the command's inputs, of several the first's; -1: none
  int32_t main = 0;      // which of the operator's inputs the running value is; the others follow in order
  bool operator==(const Step&) const = default;
};

/// How many of the command's inputs a step reads, one behind the other.
int32_t operand_count(const Step& step);

/// A call of an operator on buffers.
struct Command {
  const ops::OpDef* op = nullptr;
  ops::Attrs attrs;
  std::vector<int32_t> inputs;  // buffers: the operator's (absent ones -1), then the operands of the steps
  std::vector<int32_t> outputs;
  std::vector<Step> steps;
  std::string variant;  // the kernel that computes it; empty: the operator's meaning
  ops::Attrs options;   // what the variant was chosen with: integers and texts
  std::string node;     // the source node, for traces and messages
  bool operator==(const Command&) const = default;
};

/// How many of a command's inputs are the operator's; those behind them are operands of the steps. Negative where
/// there are not so many.
int64_t own_inputs(const Command& command);

/// The call that a command is: on inputs of the types that the program's buffers have, which outlive it. What it writes
/// is not inferred yet.
ops::Call call_of(const Command& command, const std::vector<ops::Type>& buffers);

/// Of the text that write_cpu_code makes.
inline constexpr int64_t kCpuCodeVersion = 2;

struct CpuCode {
  std::vector<Command> commands;
  bool keep_denormals = false;  // else they count as zeros
  bool deterministic = false;   // kernels round as their operators' own sums do
  /// The commands run for so many blocks of a batch's entries, one after another: of the buffers `in_blocks`, the
  /// subprogram's inputs and outputs, they have the block's part along axis 0; all other buffers hold a block.
  int64_t blocks = 1;
  std::vector<int32_t> in_blocks = {};
  bool operator==(const CpuCode&) const = default;
};

/// The type of the value in a buffer.
ops::Type type_of(const Buffer& buffer);
/// Of every buffer of a program.
std::vector<ops::Type> types_of_buffers(const Program& program);
/// The same as the code's commands have them.
std::vector<ops::Type> types_in_code(const Program& program, const CpuCode& code);

/// As bytes of kind "cpu".
Code write_cpu_code(const CpuCode& code);

/// The JSON schema of those bytes.
std::string cpu_code_schema();

/// Code of one of the program's subprograms, checked against the buffers and symbols that it names: every command
/// infers the types of its output buffers, needs no symbol that has no value yet, and all of them together define the
/// subprogram's, each once. InvalidModel names `called` and the field; Unsupported an operator that is not known.
CpuCode read_cpu_code(const Code& code, const Subprogram& subprogram, const Program& program,
                      const std::string& called);

}  // namespace hetnn::program
