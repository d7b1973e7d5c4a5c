// The epilogue: a short list of steps applied to a result while it is still in registers or in the first-level cache.
//
// Shared by linear, matmul, conv2d, conv1d, conv_transpose2d, the pools, unary, binary, nary, layer_norm and
// scale_shift. The list is the text parameter `epilogue`, steps separated by ';', words within a step by ' ':
//   add %i, maximum %i, prelu %i ...   a function of two operands: with input i of the call (f32, broadcast as below)
//   relu, clamp lo hi, elu alpha ...   a function of one operand, with its constants
// by the names of ops/elementwise/formulas.inc. The slopes of prelu have one or C elements.
// Operands i are appended to the call's inputs. An operand either has the shape of the output (any layout for rank >= 3
// that the output has too), or is constant over all but the channels ([C], [1,C,1,1]; for `linear` and `matmul` the
// last axis), or over the pixels ([N,C,1,1]), or is a single element. NaN passes through every step as in torch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hetnn::kernels {

struct EpilogueStep {
  std::string op;
  int input = -1;              // operand: its position in the call's inputs; -1 for none
  std::vector<double> values;  // constants of the step
  bool operator==(const EpilogueStep&) const = default;
};

/// "add %3; relu" for {add, 3}, {relu}. Numbers are written so that they read back exactly.
std::string format_epilogue(const std::vector<EpilogueStep>& steps);

/// The reverse; throws InvalidModel naming the step that is not understood.
std::vector<EpilogueStep> parse_epilogue(std::string_view text);

}  // namespace hetnn::kernels
