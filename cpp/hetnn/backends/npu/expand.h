// A network and its schedule as instructions: every transfer and every step of an engine.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/backends/npu/pack.h"
#include "hetnn/backends/npu/schedule.h"
#include "hetnn/npu/isa.h"

namespace hetnn::backends::scheduling {

/// Of one layer: more would take longer to plan than a model is worth.
inline constexpr int64_t kMostInstructions = int64_t{1} << 18;

/// Instructions without tokens, in an order in which one after another they are right.
struct Expanded {
  std::vector<npu::Instruction> instructions;
  std::vector<size_t> layers;  // of each instruction
};

/// Throws NodeDoesNotFit for a layer of more than kMostInstructions. The schedule has its places.
Expanded expand(const npu::Spec& spec, const Network& network, const Schedule& schedule, Packer& packer);

}  // namespace hetnn::backends::scheduling
