// Predicted times of CPU kernels: for each family of kernels what it computes and moves in a microsecond.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "hetnn/ir/graph.h"

namespace hetnn::backends::cpu {

/// What a family of kernels reaches. Work takes macs / macs_per_us + flops / flops_per_us, but no less than its bytes
/// take at bytes_per_us.
struct FamilySpeed {
  double macs_per_us = 80e3;
  double flops_per_us = 8e3;
  double bytes_per_us = 20e3;
};

/// Speeds of one machine at one number of threads. The default is the fixed guess for a machine nobody has measured.
struct Speeds {
  std::map<std::string, FamilySpeed, std::less<>> families = default_families();
  double kernel_us = 0.6;  // a kernel's barrier and dispatch
  double launch_us = 3;    // a parallel region and the caller's work

  static std::map<std::string, FamilySpeed, std::less<>> default_families();
};

/// Reads the data sheet of a CPU (docs/json.md). An empty text is an empty sheet. `where` is what messages call it.
/// InvalidModel naming the key.
Speeds parse_speeds(std::string_view text, std::string_view where);
/// The JSON schema (draft 2020-12) of the format.
std::string speeds_schema();

/// What a node does, as far as its time depends on it.
struct NodeWork {
  std::string_view family;  // a key of Speeds::families
  bool view = false;        // keeps the order of elements: no work in a plain layout
  double macs = 0;
  double flops = 0;
  double bytes = 0;
};
/// Of a node with a kernel, under the symbols' values.
NodeWork work_of(const ir::Node& node, const Bindings& bindings);

/// The time of that work by the roofline, the kernel's overhead included.
double predicted_us(const NodeWork& work, const Speeds& speeds);

}  // namespace hetnn::backends::cpu
