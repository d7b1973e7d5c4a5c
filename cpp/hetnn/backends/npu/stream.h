// The command stream of a network: scheduled, expanded, ordered.
#pragma once

#include <vector>

#include "hetnn/backends/npu/expand.h"
#include "hetnn/backends/npu/schedule.h"
#include "hetnn/npu/isa.h"

namespace hetnn::backends::npu {

/// Instructions with tokens, and whose each is.
struct Stream {
  std::vector<hetnn::npu::Instruction> instructions;
  std::vector<size_t> layers;
};
Stream stream_of(const hetnn::npu::Spec& spec, const Network& network, const Schedule& schedule, Packer& packer);

/// Cycles of a network by itself, by its stream's clock. Throws as find_schedule and expand do.
int64_t cycles_of(const hetnn::npu::Spec& spec, const Network& network);

}  // namespace hetnn::backends::npu
