// Predicted times of nodes on a CPU: what the kernels that they get compute and fetch, at the speed of a machine.
#pragma once

#include <string>
#include <string_view>

#include "hetnn/ir/graph.h"
#include "hetnn/kernels/query/machine.h"

namespace hetnn::backends::cpu {

/// One machine at one number of threads. By default a guess for one that nobody has measured: a third as fast as that
/// which kernels are chosen for, so that they are chosen alike.
struct Speeds {
  kernels::Machine machine = kernels::default_machine().slowed(3);
  double kernel_us = 0.6;  // a kernel's dispatch
  double launch_us = 3;    // a parallel region and the caller's work
};

/// Reads the data sheet of a CPU (docs/json.md). An empty text is an empty sheet. `where` is what messages call it.
/// InvalidModel naming the key.
Speeds parse_speeds(std::string_view text, std::string_view where);
/// The JSON schema (draft 2020-12) of the format.
std::string speeds_schema();

/// The time of a node alone among others, under the symbols' values.
double predicted_us(const ir::Node& node, const Bindings& bindings, const Speeds& speeds);

}  // namespace hetnn::backends::cpu
