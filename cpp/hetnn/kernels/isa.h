// The instruction sets the kernels were compiled for and this machine has.
#pragma once

#include <string>
#include <vector>

namespace hetnn::kernels {

/// Names from the best down, as "AVX3" (AVX-512), "AVX2", "NEON", "EMU128".
std::vector<std::string> available_isas();

/// Kernels made from now on use that instruction set; "" goes back to the best. For tests and comparisons, not while
/// kernels are being made on other threads. Throws Unsupported for a name that is not available.
void restrict_isa(const std::string& name);

}  // namespace hetnn::kernels
